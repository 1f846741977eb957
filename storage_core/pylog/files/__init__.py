"""Bytes at rest: byte sources, file and directory names, indexes, checkpoints and side files."""
