"""Rows and records from users to owned logs: topics, partitions, batches, appends."""
