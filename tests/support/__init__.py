"""Builders that let a test say only what it is about."""
