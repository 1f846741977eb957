"""Hashes that Kafka's own unit test has."""

from __future__ import annotations

# Of Kafka's UtilsTest, and others computed from the algorithm's description.
VECTORS = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
    (b"", 275646681),
    (b"a", -1563381124),
    (b"ab", 316155434),
    (b"123456789", -1822237082),
    (b"key", -1079937367),
]
