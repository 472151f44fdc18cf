"""Prints the findings of `scan` and `migrate`, in formats for users and for programs.

Other rooms use: formats, printing, text, usage, visible.
"""
