"""The settings file: what it may say, and `core.settings.Settings` from what it says.

Only this room uses pydantic. Commands import it when there is a settings file to read.

Other rooms use: file, nodes, schema.
"""
