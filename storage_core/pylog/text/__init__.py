"""Text for people: how sizes, times and counts are written."""
