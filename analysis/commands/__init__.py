"""The commands of `python -m analysis`, a module each: `arguments` says what a command takes, `run` runs it.

analysis/__main__.py lists them. A module is imported only where a command line names its command, so that it may import
at its top whatever it needs.
"""
