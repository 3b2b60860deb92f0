"""The native agent's tools: each says what it takes, what it may touch, and what it came to."""
