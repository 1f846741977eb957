"""What ``kafka-dump-log`` prints: one module for each kind of file, and the lines' texts."""
