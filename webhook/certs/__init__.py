"""Keys and certificates; only this room uses X.509.

Other rooms use: all.
"""
