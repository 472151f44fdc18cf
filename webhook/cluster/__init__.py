"""The client of the API server, its lists, and live objects with their owners.

Other rooms use: answers, applied, client, listing, made, objects, rehearsal,
other_kinds.
"""
