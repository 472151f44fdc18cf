"""Road 2: the same rules over files, changing only the bytes that must change."""
