"""Files that belong together, as charts and kustomizations: what one leaves holds in the others.

Other rooms use: overlays.
"""
