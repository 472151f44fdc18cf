"""Proves that files through the webhook are other files without it.

Other rooms use: comparison, proven, revision, sides, trial.
"""
