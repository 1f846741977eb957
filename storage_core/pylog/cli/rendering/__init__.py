"""What a terminal, a file or another program is shown: text, JSON, progress."""
