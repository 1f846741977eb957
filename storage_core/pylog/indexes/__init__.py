"""Indexes of owned segments: entries are appended, looked up, cut; and the files they belong to."""
