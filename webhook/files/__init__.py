"""Which files are meant, what they hold, and how they are written.

Other rooms use: candidates, capped, diff, needles, reading, replacing, results,
search, source, walk.
"""
