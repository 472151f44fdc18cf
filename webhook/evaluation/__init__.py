"""Asks the rules of an object, whether it comes for the first time or again. Pure: no I/O.

Other rooms use: again, authors, evaluate, leaves, match_conditions, ours, record, workloads.
"""
