"""What a log is made of: sizes, batches, codecs, keys, times, and what could be saved."""
