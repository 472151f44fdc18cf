"""What is known about a Go or Jinja template before it is rendered.

Other rooms use: actions, cases, expressions, filling, labels_in_sight, made_annotations,
made_selection, open_places, outputs, placeholders, regions, unseen_mounts.
"""
