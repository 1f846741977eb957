"""What is wrong with a log, and what is worth knowing: one file for each kind of file looked at."""
