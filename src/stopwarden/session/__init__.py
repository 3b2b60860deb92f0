"""The native agent: one session as an actor that executes what the turn machine asks for, and its tools."""
