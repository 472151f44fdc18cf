"""Asks the rules of an object, whether it comes for the first time or again. Pure: no I/O.

Other rooms use: again, authors, evaluate, pod_fields, match_conditions, ours, record, workloads.
"""
