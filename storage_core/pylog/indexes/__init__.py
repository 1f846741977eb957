"""Indexes of owned segments: entries are appended, looked up, cut."""
