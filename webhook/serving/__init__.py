"""The server: connections, bodies, processes and their limits, around admission."""
