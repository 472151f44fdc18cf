"""What the cluster has: watched and published for the workers, or read from a file.

Other rooms use: census, project, publish, quiet, static, watch, watched.
"""
