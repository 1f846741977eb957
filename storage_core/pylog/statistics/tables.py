"""The tables of `LogStatistics`: each as its text, see `pylog.columnar.rows`.

``size_in_bytes`` is the size of ``.log`` files, ``bytes`` that of batches as they are stored.
Records and batches are without control records, which are the broker's own; segments count all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.columnar.rows import TableText, table_of_rows

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTED = """\
batches               int64     whole ones, without those of control records
records               int64     in them, without those of uncounted batches
uncounted_batches     int64     compressed v0/v1 wrappers, which hide how many they hold
bytes                 int64     of batches as they are stored
control_batches       int64     what brokers wrote themselves
transactional_records int64     records in transactions
min_timestamp         timestamp the smallest that a header has
max_timestamp         timestamp the largest that a header has
late_batches          int64     whose largest timestamp is below that of a batch before them
late_by_ms            int64     by how much at the most
future_batches        int64     whose largest timestamp is after the moment of these statistics
is_compacted          bool      null where that is not known, or not all records have been read
live_bytes            int64     what a compaction of the whole log would keep; null likewise
dead_bytes            int64     what it would remove; null likewise
"""
_TEXTS = {
    "topics": f"""Topics.

topic                 string
partitions            int64
segments              int64
size_in_bytes         int64
largest_partition     int32
skew                  double    size of the largest partition by the mean one
{_COUNTED}""",
    "partitions": f"""Partitions.

topic                 string
partition             int32
segments              int64
size_in_bytes         int64
start_offset          int64
end_offset            int64
{_COUNTED}path                  string    of the directory
problems              list<string> what could not be read, and is not counted
""",
    "segments": """Segments, control batches and all.

topic                 string
partition             int32
segment               string
base_offset           int64
next_offset           int64
size_in_bytes         int64
valid_bytes           int64
batches               int64
records               int64
min_timestamp         timestamp
max_timestamp         timestamp
codecs                list<string>
""",
    "codecs": """Batches by their codec.

topic                 string
codec                 string
batches               int64
records               int64
uncounted_batches     int64
bytes                 int64
""",
    "batch_sizes": """Batches by what they hold, in ranges ``[start, end)`` of a measure.

topic                 string
measure               string    bytes or records
start                 int64
end                   int64
batches               int64
records               int64
bytes                 int64
""",
    "times": """Batches by the interval that their largest timestamp is in.

topic                 string
start                 timestamp null for batches without a timestamp
interval_ms           int64
batches               int64
records               int64
bytes                 int64
spanning_records      int64     of batches that began before the interval
spanning_bytes        int64     likewise
""",
    "recompression": """What batches take with another codec, level or size, by a sample.

topic                 string
codec                 string
level                 int32
batch_size            int64     before compression; null for batches as they are
sampled_bytes         int64
recompressed_bytes    int64
ratio                 double    to what they take now
ratio_low             double    in 95 % of samples it is above this
ratio_high            double    and below this; null where one run is too little
estimated_bytes       int64
""",
    "hot_keys": """The most frequent keys; the row without an offset is for records without a key.

topic                 string
key                   binary
partition             int32
offset                int64
records               int64
of_records            share     of the topic's records: certainly between low and high where all
                                were read, in 95 % of samples otherwise
of_bytes              share     of their bytes before compression
is_sampled            bool
""",
    "largest_records": """The largest records.

topic                 string
partition             int32
offset                int64
record_bytes          int64
key                   binary
timestamp             timestamp
is_sampled            bool
""",
}
SCHEMAS: dict[str, pa.Schema] = {
    name: TableText.parse(text).schema for name, text in _TEXTS.items()
}
"""The columns of each table."""


def table_of(name: str, rows: list[tuple[object, ...]]) -> pa.Table:
    """Return a table of rows that have the values of its columns, in order."""
    return table_of_rows(rows, SCHEMAS[name])
