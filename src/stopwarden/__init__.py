"""Stopwarden decides, each time an AI coding agent is about to stop, whether it may.

The hook imports this package at every stop, so nothing is imported here.
"""

__version__ = "0.1.0"
