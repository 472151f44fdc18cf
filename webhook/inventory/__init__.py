"""What the cluster has: watched and published for the workers, or read from a file.

Other rooms use: census, project, publish, log_limits, static, watch, watched.
"""
