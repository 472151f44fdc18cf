"""What can be known of a Go or Jinja template before it is rendered."""
