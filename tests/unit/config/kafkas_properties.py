"""Properties of topics and of log managers, with the defaults of Kafka."""

from __future__ import annotations

# Kafka 4.3's documented table: property, default, values it refuses, the ends of what it takes.
TOPIC_PROPERTIES = [
    ("segment.bytes", "1073741824", ["13", "2147483648"], ["14", "2147483647"]),
    ("segment.ms", "604800000", ["0", "9223372036854775808"], ["1", "9223372036854775807"]),
    ("segment.jitter.ms", "0", ["-1"], ["9223372036854775807"]),
    ("segment.index.bytes", "10485760", ["3", "2147483648"], ["4", "2147483647"]),
    ("index.interval.bytes", "4096", ["-1", "2147483648"], ["0", "2147483647"]),
    ("max.message.bytes", "1048588", ["-1", "2147483648"], ["0", "2147483647"]),
    (
        "max.decompressed.message.bytes",
        "2147483639",
        ["0", "2147483640"],
        ["1", "2147483638"],
    ),
    ("message.timestamp.type", "CreateTime", ["createtime", "NoTimestampType"], ["LogAppendTime"]),
    ("message.timestamp.before.max.ms", "9223372036854775807", ["-1"], ["0"]),
    ("message.timestamp.after.max.ms", "3600000", ["-1"], ["0", "9223372036854775807"]),
    (
        "compression.type",
        "producer",
        ["none", "GZIP", "brotli"],
        ["uncompressed", "zstd", "lz4", "snappy", "gzip"],
    ),
    ("compression.gzip.level", "-1", ["-2", "0", "10"], ["1", "9"]),
    ("compression.lz4.level", "9", ["-1", "0", "18"], ["1", "17"]),
    ("compression.zstd.level", "3", ["-0.1", "-131073", "23"], ["-131072", "0", "22"]),
    (
        "cleanup.policy",
        "delete",
        ["true", "foobar", "Compact", "delete,delete", "compact,", "compact;delete"],
        ["compact", "compact,delete", ""],
    ),
    ("retention.ms", "604800000", ["-2"], ["-1", "0", "9223372036854775807"]),
    (
        "retention.bytes",
        "-1",
        ["9223372036854775808", "-9223372036854775809"],
        ["-9223372036854775808", "9223372036854775807"],
    ),
    ("file.delete.delay.ms", "60000", ["-1"], ["0"]),
    ("delete.retention.ms", "86400000", ["-1"], ["0"]),
    ("min.compaction.lag.ms", "0", ["-1"], ["9223372036854775807"]),
    ("max.compaction.lag.ms", "9223372036854775807", ["-1", "0"], ["1"]),
    ("min.cleanable.dirty.ratio", "0.5", ["-0.1", "1.2", "nan", "1e400"], ["0.0", "1.0", "0.001"]),
    ("flush.messages", "9223372036854775807", ["-1", "0"], ["1"]),
    ("flush.ms", "9223372036854775807", ["-1"], ["0"]),
    ("preallocate", "false", ["0", "yes", ""], ["true"]),
]
