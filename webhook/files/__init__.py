"""Finds the files that the command line selects, reads them, and writes new text to them.

Other rooms use: atomic_write, candidates, diff, folder, limited_reading, reading, results, search,
search_words, source, walk, work_tree.
"""
