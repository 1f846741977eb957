"""What a log is made of, as tables: partitions, segments, batches, side files, transactions."""
