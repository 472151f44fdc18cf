"""What is known about a Go or Jinja template before it is rendered.

Other rooms use: actions, blocks, cases, cluster_questions, computing, expressions, filling,
known_labels, open_places, outputs, placeholders, produced_annotations, produced_selection, regions,
unseen_mounts, written, ytt.
"""
