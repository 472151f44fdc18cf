"""The input and the output of rules: context, edits, the draft, findings, settings. Pure: no I/O.

Other rooms use: all.
"""
