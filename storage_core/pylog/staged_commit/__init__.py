"""What a commit has announced: which of it the logs hold, and how the rest gets there."""
