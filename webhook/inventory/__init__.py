"""The inventory of the cluster: watched and published for the workers, or read from a file.

Other rooms use: log_limits, project, publish, static, summary, watch, watched.
"""
