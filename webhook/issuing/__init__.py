"""The webhook's own certificates in a cluster: one replica keeps them, and each one serves them.

Other rooms use: keeper, lease, objects.
"""
