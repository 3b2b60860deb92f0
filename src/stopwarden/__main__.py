"""`python -m stopwarden` is the `stopwarden` program."""

from stopwarden.cli.main import run

run()
