"""A YAML or JSON text and edits of its data to the fewest changed characters."""
