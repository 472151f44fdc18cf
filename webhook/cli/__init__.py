"""The command: one file a subcommand, imported only when it runs.

Other rooms use: main.
"""
