"""Shell: keys and certificates; the only room that knows X.509.

Other rooms use: clients, context, development, failures.
"""
