"""Producers of a log: who they are, what they sent last, which transactions are open."""
