"""What the cluster has: watched and published for the workers, or read from a file.

Other rooms use: census, cluster_autoscaler, project, publish, quiet, static, watch, watched.
"""
