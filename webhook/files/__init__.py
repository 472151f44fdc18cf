"""Which files are meant, what they hold, and how they are written."""
