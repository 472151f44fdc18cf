"""The settings file: checks it, and returns `core.settings.Settings`.

Only this room uses pydantic. Commands import it when there is a settings file to read.

Other rooms use: file, nodes, schema.
"""
