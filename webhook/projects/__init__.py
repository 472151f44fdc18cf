"""Files that belong together (charts, kustomizations): a finding in one can hold edits in another.

Other rooms use: harmless_places, held_together, kustomizations, merged_values,
outside_amounts, ytt_overlays.
"""
