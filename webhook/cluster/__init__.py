"""The client of the API server, its lists, and live objects with their owners.

Other rooms use: answers, applied, client, controllers, dry_run, listing, made_pods, objects,
other_kinds, workload_status.
"""
