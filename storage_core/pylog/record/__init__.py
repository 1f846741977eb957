"""Bytes to batches to records, in plain Python: the readable reference of the formats. No files."""
