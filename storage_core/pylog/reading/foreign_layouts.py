"""Directories of others that are easily taken for Kafka's: which one it is, by file names.

Redpanda
    ``<data>/kafka/<topic>/<partition>_<revision>/<base offset>-<term>-v1.log``; in object storage
    ``<hash>/kafka/…/<base offset>-<last offset>-<bytes>-<term>-v1.log.<term>``.
Tiered storage of Aiven
    ``<prefix>/<topic>-<topic id>/<partition>/<base offset, 20 digits>-<segment id>`` with
    ``.log``, ``.indexes`` and ``.rsm-manifest``.
Kafka's LocalTieredStorage
    ``<topic>-<partition>-<topic id>/<base offset, 20 digits>-<segment id>`` with ``.log``,
    ``.index``, …; Aiven's names without its own suffixes.
Tiered storage of Confluent
    ``0/<object id>/<topic id>/<partition>/<base offset, 20 digits>_<leader epoch>_v0.segment``.

Source: RemoteLogSegmentFileset (Kafka 4.4); the segment names of Redpanda 24, and of the plugins.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.errors import (
    LogDirectoryError,
)
from pylog.files.storage import list_directory
from pylog.locations import printable_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.files.storage import DirectoryEntry


_AS_KAFKA_NAMES_IT = "copy it as <topic>-<partition>/<20 digits>.log"


# The first that fits: a directory of Aiven's holds names of LocalTieredStorage, too.
_LAYOUTS = (
    (
        re.compile(r"[0-9]+-[0-9]+(-[0-9]+-[0-9]+)?-v[0-9]+\.log(\.[0-9]+)?"),
        "a segment of Redpanda, whose files are not Kafka's; read its records through its brokers",
    ),
    (
        re.compile(r"[0-9]{20}-[A-Za-z0-9_-]{22}\.(indexes|rsm-manifest)"),
        (
            "a segment in Aiven's tiered storage; to read its .log, which must be neither "
            f"compressed nor encrypted there, {_AS_KAFKA_NAMES_IT}"
        ),
    ),
    (
        re.compile(r"[0-9]{20}-[A-Za-z0-9_-]{22}\.log"),
        f"a segment in Kafka's LocalTieredStorage; to read it, {_AS_KAFKA_NAMES_IT}",
    ),
    (
        re.compile(r"[0-9]{20}_[0-9]+_v[0-9]+\.segment"),
        f"a segment in Confluent's tiered storage; to read it, {_AS_KAFKA_NAMES_IT}",
    ),
)


_MOST_LISTED = 50


def what_it_looks_like(entries: Sequence[DirectoryEntry]) -> str:
    """Return a sentence about the layout that a directory without logs has; may be empty.

    Level by level, as far as a few dozen directories go.
    """
    level = list(entries)
    left = _MOST_LISTED
    while level:
        for pattern, what in _LAYOUTS:
            for entry in level:
                if pattern.fullmatch(entry.name):
                    return f". {printable_location(entry.path)} looks like {what}"
        below: list[DirectoryEntry] = []
        for entry in _directories(level):
            if not left:
                break
            left -= 1
            below += _listed(entry)
        level = below
    return ""


def _directories(entries: Iterable[DirectoryEntry]) -> Iterable[DirectoryEntry]:
    for entry in entries:
        try:
            if entry.is_dir():
                yield entry
        except OSError:
            continue


def _listed(entry: DirectoryEntry) -> Sequence[DirectoryEntry]:
    try:
        return list_directory(entry.path)
    except LogDirectoryError:
        return []
