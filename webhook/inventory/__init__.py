"""The inventory of the cluster: watched and published for the workers, or read from a file.

Other rooms use: inventory_file, kinds, log_limits, object_facts, publish, store, summary, watch,
watcher_metrics.
"""
