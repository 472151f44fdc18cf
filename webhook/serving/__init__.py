"""The server: connections, bodies, processes and their limits, around admission.

Other rooms use: asgi, heap, server, waiting.
"""

BACKLOG = 4096  # API servers may open all their connections at once; the kernel has its own limit
