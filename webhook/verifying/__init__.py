"""Proves that files through the webhook are other files without it.

Other rooms use: comparison, read_side, revision, trial, unproven.
"""
