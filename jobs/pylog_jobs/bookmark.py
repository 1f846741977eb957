"""The bookmark of an incremental ingest: how far its source is read, and which rows near the end.

JSON, kept as text in the ledger of the log directory, in the entry of the run that wrote the rows::

    {
      "version": 1,
      "column": "updated_at",         null: positions are versions of a table
      "kind": "timestamp",            timestamp, timestamp_ntz, date, integer or version
      "end": 1795374000000000,        the rows before it have been read (exclusive), or the version
      "remembered_from": 17953…,      all rows written from here on are below; null: none are
      "identity": ["id"],             the columns that their digests are of
      "positions": "eJx…",            of those rows, ascending: int64, little-endian, each less the
                                      one before it, deflated, in base64
      "digests": "…",                 16 bytes for each of them, in the same order, in base64
      "types": ["bigint"],            theirs; left out where nothing is remembered
      "replaces": {"0": 1200}         of a run with --full: records before these offsets go
    }

A position is an integer: microseconds or days since 1970-01-01, or the id itself.

**Late rows.** With end ``e`` and lag ``l`` the next run reads from ``e - l`` on, and leaves out the
rows whose digests are here. A digest is of the row as it was read by the tasks whose output
was committed together with this bookmark. So a row is in the log if and only if it is remembered,
for all positions from ``remembered_from`` on, whatever was killed when.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pylog_jobs.record_write import DIGEST_BYTES, MOST_REMEMBERED, ensure_few

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog_jobs.record_write import StagedRows

TIMESTAMP, TIMESTAMP_NTZ, A_DATE, INTEGER, VERSION = KINDS = (
    *("timestamp", "timestamp_ntz", "date", "integer", "version"),
)
_VERSION = 1
_FIELDS = frozenset(
    ("version", "column", "kind", "end", "remembered_from", "identity", "positions", "digests")
)
_MALFORMED = (ValueError, TypeError, AttributeError, RecursionError)
_NO_POSITIONS = np.empty(0, np.int64)


class BookmarkError(ValueError):
    """A bookmark in the ledger is not one that this version reads."""


@dataclass(frozen=True, slots=True, eq=False)
class Bookmark:
    """How far a source is read."""

    column: str | None
    kind: str
    end: int
    remembered_from: int | None = None
    identity: tuple[str, ...] = ()
    positions: np.ndarray[tuple[int], np.dtype[np.int64]] = field(
        default_factory=lambda: _NO_POSITIONS
    )
    digests: bytes = b""
    replaces: Mapping[int, int] = field(default_factory=dict)
    types: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return what the ledger keeps."""
        order = np.argsort(self.positions, kind="stable")
        rows = np.frombuffer(self.digests, np.uint8).reshape(-1, DIGEST_BYTES)[order]
        steps = np.diff(self.positions[order], prepend=np.int64(0))
        replaces = {str(number): offset for number, offset in self.replaces.items()}
        content = {
            "version": _VERSION,
            "column": self.column,
            "kind": self.kind,
            "end": self.end,
            "remembered_from": self.remembered_from,
            "identity": list(self.identity),
            "positions": base64.b64encode(zlib.compress(steps.astype("<i8").tobytes())).decode(),
            "digests": base64.b64encode(rows.tobytes()).decode(),
            **({"types": list(self.types)} if self.types else {}),
            **({"replaces": replaces} if replaces else {}),
        }
        return json.dumps(content)

    @classmethod
    def from_text(cls, text: str) -> Bookmark:
        """Return what `to_text` made; `BookmarkError` if it is something else."""
        try:
            content = json.loads(text)
            return cls._parsed(content)
        except (*_MALFORMED, zlib.error) as error:
            raise BookmarkError(f"the bookmark in the ledger is malformed: {error}") from error

    @classmethod
    def _parsed(cls, content: Any) -> Bookmark:  # noqa: ANN401 - any JSON
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise ValueError(f"expected an object of version {_VERSION}")
        if set(content) - {"replaces", "types"} != _FIELDS or content["kind"] not in KINDS:
            raise ValueError(f"its keys are {', '.join(sorted(map(str, content)))}")
        digests = base64.b64decode(content["digests"], validate=True)
        count, rest = divmod(len(digests), DIGEST_BYTES)
        inflater = zlib.decompressobj()
        steps = inflater.decompress(
            base64.b64decode(content["positions"], validate=True), 8 * count + 1
        )
        if rest or count > MOST_REMEMBERED or len(steps) != 8 * count:
            raise ValueError(f"{len(digests)} bytes of digests, {len(steps)} bytes of positions")
        return cls(
            content["column"],
            content["kind"],
            _integer(content["end"]),
            None if content["remembered_from"] is None else _integer(content["remembered_from"]),
            tuple(map(str, content["identity"])),
            np.cumsum(np.frombuffer(steps, "<i8"), dtype=np.int64),
            digests,
            {int(number): _integer(of) for number, of in content.get("replaces", {}).items()},
            tuple(map(str, content.get("types", []))),
        )


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r} is not an integer of 64 bits")
    return value


@dataclass(frozen=True, slots=True)
class ReadRange:
    """What one run reads."""

    start: int | None  # None: from the first row
    end: int  # exclusive; of versions, the last one
    remember_from: int | None  # of the rows of this run those from here on are remembered
    is_new: bool  # whether the bookmark moves on


def plan_range(
    last: Bookmark | None,
    *,
    initial: int | None,  # where the first run starts; None for the first row
    lag: int,  # how far behind the end a row may still come
    upper: int | None,  # where a run ends at the latest (exclusive)
    newest: int | None,  # the largest position of the source from the start on; None without one
) -> ReadRange | None:
    """Return what the run after ``last`` reads; None if there is nothing that it could find."""
    start = initial if last is None else start_after(last, lag)
    ends = [] if newest is None else [newest + 1 if upper is None else min(newest + 1, upper)]
    if last is not None:
        ends.append(last.end)  # never back: a clock that was set back, or rows that were deleted
    if newest is None or not ends:
        return None
    end = max(ends)
    if start is not None and end <= start:
        return None
    remember_from = None if not lag else end - lag if start is None else max(end - lag, start)
    return ReadRange(start, end, remember_from, is_new=last is None or end > last.end)


def start_after(last: Bookmark, lag: int) -> int:
    """Return where rows may have come since: no farther back than what is remembered."""
    known_from = last.end if last.remembered_from is None else last.remembered_from
    return max(last.end - lag, min(known_from, last.end))


def next_bookmark(found: ReadRange, staged: StagedRows, about: Bookmark) -> Bookmark:
    """Return the bookmark of a run; ``about`` has all of it but what its rows add."""
    remembered = dict(staged.remembered)
    if found.remember_from is not None:
        for place in np.flatnonzero(about.positions >= found.remember_from).tolist():
            digest = about.digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES]
            remembered[digest] = int(about.positions[place])
    ensure_few(len(remembered))
    return Bookmark(
        about.column,
        about.kind,
        found.end,
        found.remember_from,
        about.identity,
        np.fromiter(remembered.values(), np.int64, len(remembered)),
        b"".join(remembered),
        about.replaces,
        about.types,
    )
