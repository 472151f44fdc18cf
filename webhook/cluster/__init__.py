"""The API server's answers: its client, its lists, and the objects that are live.

Other rooms use: answers, applied, client, listing, objects.
"""
