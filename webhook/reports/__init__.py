"""Prints the findings of `scan` and `migrate`, in formats for users and for programs.

Other rooms use: escaping, formats, printing, text, usage.
"""
