"""Compaction of owned logs: which to clean, and from where to where; the map of keys; the copy."""
