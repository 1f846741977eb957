"""The tables of `LogStatistics`: their columns, and the rows that they are made of.

Sizes are in bytes; ``size_in_bytes`` of a topic, partition or segment is that of its ``.log``
files, ``bytes`` that of batches as they are stored. Timestamps are timestamp[ms, UTC]. Records and
batches do not include control records, which are the broker's own; segments count all.

partitions
    ``uncounted_batches`` are compressed v0/v1 wrappers, whose headers do not say how many records
    they hold: ``records`` is without them. ``late_batches`` have a largest timestamp below that of
    a batch before them, ``late_by_ms`` says by how much at the most, and the largest timestamp of
    ``future_batches`` is after the moment at which statistics were made. ``is_compacted``,
    ``live_bytes`` and ``dead_bytes`` are null unless all records have been read, and where the
    log is not known to be compacted.
batch_sizes
    Batches by their ``measure``, "bytes" or "records", in ranges ``[start, end)``.
times
    Batches by the interval that their largest timestamp is in; ``spanning_…`` is what of it is in
    batches that began before it. A null start is for batches without a timestamp.
recompression
    What the topic's batches take with another codec, level or batch size (before compression;
    null for batches as they are), by a sample: ``ratio`` to what they take now, between
    ``ratio_low`` and ``ratio_high`` in 95 % of samples; null high where one run is too little.
hot_keys
    Shares of the topic's records and of their bytes before compression. Where all records were
    read, a share is certainly between its low and its high value; in a sample, in 95 % of samples.
    The row without an offset is for all records without a key.
"""

from __future__ import annotations

import pyarrow as pa

from pylog.inspect.tables.row_batches import array_of

_TIMESTAMP = pa.timestamp("ms", tz="UTC")

_COUNTED = (
    ("batches", pa.int64()),
    ("records", pa.int64()),
    ("uncounted_batches", pa.int64()),
    ("bytes", pa.int64()),
    ("control_batches", pa.int64()),
    ("transactional_records", pa.int64()),
    ("min_timestamp", _TIMESTAMP),
    ("max_timestamp", _TIMESTAMP),
    ("late_batches", pa.int64()),
    ("late_by_ms", pa.int64()),
    ("future_batches", pa.int64()),
    ("is_compacted", pa.bool_()),
    ("live_bytes", pa.int64()),
    ("dead_bytes", pa.int64()),
)
_SHARE = pa.struct([("share", pa.float64()), ("low", pa.float64()), ("high", pa.float64())])

SCHEMAS: dict[str, pa.Schema] = {
    "topics": pa.schema(
        [
            ("topic", pa.string()),
            ("partitions", pa.int64()),
            ("segments", pa.int64()),
            ("size_in_bytes", pa.int64()),
            ("largest_partition", pa.int32()),
            ("skew", pa.float64()),
            *_COUNTED,
        ]
    ),
    "partitions": pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("segments", pa.int64()),
            ("size_in_bytes", pa.int64()),
            ("start_offset", pa.int64()),
            ("end_offset", pa.int64()),
            *_COUNTED,
            ("path", pa.string()),
            ("problems", pa.list_(pa.string())),
        ]
    ),
    "segments": pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("segment", pa.string()),
            ("base_offset", pa.int64()),
            ("next_offset", pa.int64()),
            ("size_in_bytes", pa.int64()),
            ("valid_bytes", pa.int64()),
            ("batches", pa.int64()),
            ("records", pa.int64()),
            ("min_timestamp", _TIMESTAMP),
            ("max_timestamp", _TIMESTAMP),
            ("codecs", pa.list_(pa.string())),
        ]
    ),
    "codecs": pa.schema(
        [
            ("topic", pa.string()),
            ("codec", pa.string()),
            ("batches", pa.int64()),
            ("records", pa.int64()),
            ("uncounted_batches", pa.int64()),
            ("bytes", pa.int64()),
        ]
    ),
    "batch_sizes": pa.schema(
        [
            ("topic", pa.string()),
            ("measure", pa.string()),
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("batches", pa.int64()),
            ("records", pa.int64()),
            ("bytes", pa.int64()),
        ]
    ),
    "times": pa.schema(
        [
            ("topic", pa.string()),
            ("start", _TIMESTAMP),
            ("interval_ms", pa.int64()),
            ("batches", pa.int64()),
            ("records", pa.int64()),
            ("bytes", pa.int64()),
            ("spanning_records", pa.int64()),
            ("spanning_bytes", pa.int64()),
        ]
    ),
    "recompression": pa.schema(
        [
            ("topic", pa.string()),
            ("codec", pa.string()),
            ("level", pa.int32()),
            ("batch_size", pa.int64()),
            ("sampled_bytes", pa.int64()),
            ("recompressed_bytes", pa.int64()),
            ("ratio", pa.float64()),
            ("ratio_low", pa.float64()),
            ("ratio_high", pa.float64()),
            ("estimated_bytes", pa.int64()),
        ]
    ),
    "hot_keys": pa.schema(
        [
            ("topic", pa.string()),
            ("key", pa.binary()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("records", pa.int64()),
            ("of_records", _SHARE),
            ("of_bytes", _SHARE),
            ("is_sampled", pa.bool_()),
        ]
    ),
    "largest_records": pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("record_bytes", pa.int64()),
            ("key", pa.binary()),
            ("timestamp", _TIMESTAMP),
            ("is_sampled", pa.bool_()),
        ]
    ),
}
"""The columns of each table."""


def table_of(name: str, rows: list[tuple[object, ...]]) -> pa.Table:
    """Return a table of rows that have the values of its columns, in order."""
    schema = SCHEMAS[name]
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [
        array_of(list(values), field.type) for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
