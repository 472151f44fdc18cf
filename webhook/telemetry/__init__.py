"""Shell: what the program says about its own work. JSON lines now, metrics later.

Other rooms use: logs, metrics, page, scratch.
"""
