"""Models that a native session can talk to: one small protocol, a scripted provider, and one adapter to real ones."""
