"""`dump`: what kafka-dump-log prints of the files of a partition."""
