"""Takes a YAML or JSON text and edits of its data; returns the fewest changed characters.

Other rooms use: documents, nodes, places, splice, style, verify, yaml_words.
"""
