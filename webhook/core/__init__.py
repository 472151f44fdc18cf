"""The input and the output of rules: context, edits, the draft, findings, settings. Pure: no I/O.

Other rooms use: built_in, changes, did_you_mean, draft, edits, errors, findings, gpu_amounts,
host_paths, legacy_images, legacy_names, limit_ranger, modes, namespace_selection, object_size,
policy_exceptions, repaired_annotation, rule, settings, text_patterns.
"""
