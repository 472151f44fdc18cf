"""What the program reports about its own work: JSON lines and metrics.

Other rooms use: logs, metrics, page, shared_folder.
"""
