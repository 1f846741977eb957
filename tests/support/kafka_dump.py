"""What DumpLogSegments of each broker version said of a golden partition, as dictionaries.

Kept apart from everything that reads logs: it is what readers are held against.
"""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.golden import GoldenPartition

Fields = dict[str, str]

# Lines that the tools make themselves. A record's payload may hold line breaks, and what follows is
# no line of ours unless it looks like one; no payload of the golden data does.
_LINE = re.compile(r"(\| )?(?=(?:baseOffset|offset|timestamp|version|producerId): ?-?\d)")
_FIELD = re.compile(r"(\w+): (\S*)")
# Free text, always last: key, payload and header names may look like fields.
_FREE_TEXT = re.compile(r" (?:headerKeys|key|payload): .*")
_MARKER = re.compile(r"endTxnMarker: (\w+)")


def dump_path(partition: GoldenPartition) -> Path:
    return partition.log_directory / f"dump.{partition.name}.txt.gz"


def dump_text(path: Path) -> str:
    """Return what a golden file has of a tool's output."""
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def dumped_files(dump: GoldenPartition | str) -> dict[str, list[Fields]]:
    """Return the lines of each file that was dumped, by the file's name, as fields.

    Of what Kafka's tool printed of a golden partition, or of such a text.

    A record's line has field ``isRecord``, that of a transaction marker ``endTxnMarker``.
    """
    return {
        name: [fields for line in body.split("\n") if (fields := _fields(line))]
        for name, body in _sections(_text(dump)).items()
    }


def not_dumped(partition: GoldenPartition) -> set[str]:
    """Return the files at which the tool gave up; what it said of them is a beginning at most."""
    return {
        name
        for name, body in _sections(_text(partition)).items()
        if "[stderr] Exception in thread" in body
    }


def _sections(text: str) -> dict[str, str]:
    sections = {}
    for section in re.split(r"^Dumping ", text, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        sections[name.rpartition("/")[2]] = body
    return sections


def _text(dump: GoldenPartition | str) -> str:
    return dump if isinstance(dump, str) else dump_text(dump_path(dump))


def _fields(line: str) -> Fields:
    match = _LINE.match(line)
    if match is None:
        return {}
    fields = dict(_FIELD.findall(_FREE_TEXT.sub("", line)))
    if match[1]:
        fields["isRecord"] = "true"
    if marker := _MARKER.search(line):
        fields["endTxnMarker"] = marker[1]
    return fields


def dumped_batches(partition: GoldenPartition) -> dict[str, list[Fields]]:
    """Return the lines of batches by ``.log`` file; old tools print none, see `has_batches`."""
    return {
        name: [line for line in lines if "isRecord" not in line]
        for name, lines in dumped_files(partition).items()
        if name.endswith(".log")
    }


def has_batches(partition: GoldenPartition) -> bool:
    """Whether the tool that dumped printed a line for each batch, and not for each record."""
    text = _text(partition)
    return (
        re.search(r"^(?:baseOffset|offset): .* size: \d+ magic: ", text, re.MULTILINE) is not None
    )


def optional_number(text: str) -> int | None:
    """Return the number in what Scala and Java print of an optional one."""
    match = re.fullmatch(
        r"(?:Some\((-?\d+)\)|OptionalLong\[(-?\d+)\]|None|OptionalLong\.empty)", text
    )
    if match is None:
        raise ValueError(f"{text!r} is not an optional number")
    found = match[1] or match[2]
    return None if found is None else int(found)


def number(fields: Mapping[str, str], name: str) -> int | None:
    """Return a dumped number, None where there is none."""
    value = int(fields.get(name, -1))
    return None if value == -1 else value


def flag(fields: Mapping[str, str], name: str) -> bool:
    """Whether a dumped truth value is there and true."""
    return fields.get(name, "false") == "true"
