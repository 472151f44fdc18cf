"""Finds the files that the command line selects, reads them, and writes new text to them.

Other rooms use: candidates, capped, diff, folder, reading, replacing, results, search,
search_words, source, walk, work_tree.
"""
