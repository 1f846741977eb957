"""What commands print for a terminal, a file or another program: text, JSON, progress."""
