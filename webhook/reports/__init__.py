"""What `scan` and `migrate` found, in the formats that people and programs read.

Other rooms use: formats, printing, text, visible.
"""
