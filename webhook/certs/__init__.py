"""Shell: keys and certificates; the only room that knows X.509."""
