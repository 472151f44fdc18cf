"""Runs the rules on an object: when it is created, when it is updated, and in files. Pure: no I/O.

Other rooms use: authors, evaluate, known_fields, match_conditions, matching_templates, pod_fields,
pod_updates, repair_fields, repair_record, template_updates, update_fields, workloads.
"""
