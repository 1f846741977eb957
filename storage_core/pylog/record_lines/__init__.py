"""Records as lines of text: Arrow columns in, bytes out, column by column; no I/O."""
