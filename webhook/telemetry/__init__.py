"""Shell: what the program says about its own work. JSON lines now, metrics later."""
