"""The API server's answers: its client, its lists, and the objects that are live."""
