"""What a rule may do and what it is told: edits, the draft, findings, settings. Pure: no I/O.

Other rooms use: all.
"""
