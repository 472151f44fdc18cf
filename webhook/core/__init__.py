"""The input and the output of rules: context, edits, the draft, findings, settings. Pure: no I/O.

Other rooms use: budget, built_in, changes, counting, draft, edits, errors, exceptions, findings,
guess, host_paths, legacy_images, legacy_names, limit_ranger, modes, repaired, rule, selection,
settings, text_patterns.
"""
