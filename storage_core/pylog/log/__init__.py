"""Owned logs: append, roll, recover, truncate, retain; one process holds the directory."""
