"""Records of the topics that Kafka keeps for itself: bytes to values, and to the dump tool's text.

Nothing here opens a file. What a record cannot be is an `InvalidRecordError`, whatever its bytes.
"""
