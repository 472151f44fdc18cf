"""Runs the rules on an object: when it is created, when it is updated, and in files. Pure: no I/O.

Other rooms use: again, authors, evaluate, match_conditions, pod_fields, record, repair_fields,
update_fields, workloads.
"""
