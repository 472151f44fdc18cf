"""What the cluster has: watched and published for the workers, or read from a file."""
