"""Asks the rules of an object, whether it comes for the first time or again. Pure: no I/O."""
