"""What DumpLogSegments says of every file of some partitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.batches import LOG_APPEND_TIME
from tests.support.kafka_broker_tools import run_dump_log_segments

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.batches import Stored

RECORDS, INDEXES, INDEX_SANITY = "records", "indexes", "index sanity"

_FLAGS = {
    RECORDS: ("--deep-iteration", "--print-data-log"),
    INDEXES: ("--verify-index-only",),
    INDEX_SANITY: ("--index-sanity-check",),
}
_SUFFIXES = {
    RECORDS: (".log", ".snapshot", ".txnindex"),
    INDEXES: (".index", ".timeindex"),
    INDEX_SANITY: (".index", ".timeindex"),
}
_SEQUENCE = re.compile(r" sequence: -?\d+")
_GAPS = re.compile(r"Non-consecutive offsets in .*\n(?:  -?\d+ is followed by \d+\n)+")


@dataclass(frozen=True)
class Dump:
    """Both streams of one run over ``files``."""

    files: list[Path]
    stdout: str
    stderr: str

    @property
    def complaints(self) -> str:
        """What the tool did not like, but for gaps between offsets, which are no fault."""
        return _GAPS.sub("", self.stderr)

    def printed_of(self, partition: str) -> list[str]:
        """Return the lines about a partition's files, in the files' order."""
        sections = re.split(r"^Dumping ", self.stdout, flags=re.MULTILINE)[1:]
        ours = sorted(each for each in sections if each.split("/")[-2] == partition)
        return [line for each in ours for line in each.splitlines()]

    def records_of(self, partition: str) -> list[str]:
        """Return the lines of records that are no control records, without the sequences."""
        return [
            _SEQUENCE.sub("", line)
            for line in self.printed_of(partition)
            if line.startswith("| offset: ") and " endTxnMarker: " not in line
        ]


def dumps_of(directories: Iterable[Path], version: str) -> dict[str, Dump]:
    """Return what the tool of a version says of partition directories, by mode."""
    paths = [path for directory in directories for path in sorted(directory.iterdir())]
    dumps = {}
    for mode, flags in _FLAGS.items():
        files = [path for path in paths if path.suffix in _SUFFIXES[mode]]
        dumps[mode] = Dump(files, *run_dump_log_segments(files, *flags, version=version))
    return dumps


def record_line(record: Stored) -> str:
    """Return what the tool must print of a record, without its sequence."""
    kind = "LogAppendTime" if record.timestamp_type == LOG_APPEND_TIME else "CreateTime"
    sizes = [-1 if data is None else len(data) for data in (record.key, record.value)]
    header_keys = ",".join(name for name, _ in record.headers)
    line = (
        f"| offset: {record.offset} {kind}: {record.timestamp} "
        f"keySize: {sizes[0]} valueSize: {sizes[1]} headerKeys: [{header_keys}]"
    )
    if record.key is not None:
        line += f" key: {record.key.decode()}"
    if record.value is not None:
        line += f" payload: {record.value.decode()}"
    return line
