"""Runs the rules on an object: when it is created, when it is updated, and in files. Pure: no I/O.

Other rooms use: again, again_pod, authors, evaluate, known_fields, match_conditions, pod_fields,
record, repair_fields, same_places, update_fields, workloads.
"""
