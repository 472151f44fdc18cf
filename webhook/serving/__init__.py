"""The server: connections, bodies, processes and their limits, around admission.

Other rooms use: asgi, server, waiting.
"""
