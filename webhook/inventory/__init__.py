"""The inventory of the cluster: watched and published for the workers, or read from a file.

Other rooms use: kinds, log_limits, project, publish, static, store, summary, watch, watched.
"""
