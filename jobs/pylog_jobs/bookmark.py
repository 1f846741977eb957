"""The bookmark of an incremental ingest: how far its source is read, and which rows near the end.

JSON, kept as text by the ledger of the log directory, in the entry of the run that wrote the rows::

    {
      "version": 2,
      "column": "updated_at",         null: positions are versions of a table
      "kind": "timestamp",            timestamp, timestamp_ntz, date, integer or version
      "end": 1795374000000000,        the rows before it have been read (exclusive), or the version
      "remembered_from": 17953…,      all rows written from here on are below; null: none are
      "identity": ["id"],             the columns that their digests are of
      "positions": "eJx…",            of those rows, ascending: int64, little-endian, each less the
                                      one before it, deflated, in base64
      "digests": "…",                 16 bytes for each of them, in the same order, in base64
      "types": ["bigint"],            theirs; left out where nothing is remembered
      "replaces": {"0": 1200},        of a run with --full: records before these offsets go
      "tables": {"shop.orders": "…"}, what identified the tables that were read
      "unsettled_from": 1000,         open transactions may still add rows from here on
      "checkpoints": [[812, 999]],    see `settled_before`
      "nothing_read": true,           after --full of a source without rows: start at the first
      "rows_before": 5120             how many rows the source had before `remembered_from` (or end)
    }

Keys from ``types`` on are left out where they say nothing. Version 1 had no key after ``replaces``.

A position is an integer: microseconds or days since 1970-01-01, or the id itself.

**Late rows.** With end ``e`` and lag ``l`` the next run reads from ``e - l`` on, and leaves out the
rows whose digests are here. A digest is of the row as it was read by the tasks whose output
was committed together with this bookmark. So a row is in the log if and only if it is remembered,
for all positions from ``remembered_from`` on, whatever was killed when.

**Equal rows.** The newest value is always read again (the lag is at least 1), since the source may
get another row with the same value after the run.

**Open transactions.** A database gives ids before it commits: a smaller id may become visible
after a larger one was read. From ``unsettled_from`` on the next run therefore reads again, however
short the lag is.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pylog_jobs.job import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

TIMESTAMP, TIMESTAMP_NTZ, A_DATE, INTEGER, VERSION = KINDS = (
    *("timestamp", "timestamp_ntz", "date", "integer", "version"),
)
DAY_US = 86_400_000_000
DIGEST_BYTES = 16
MOST_REMEMBERED = 10_000_000
"""Rows near the end that a bookmark remembers: 24 bytes each, before they are compressed."""
LEAST_POSITION, MOST_POSITION = -(2**63), 2**63 - 1

_VERSIONS = (1, 2)
_FIELDS = frozenset(
    ("version", "column", "kind", "end", "remembered_from", "identity", "positions", "digests")
)
_OPTIONAL = frozenset(
    (
        *("replaces", "types", "tables", "unsettled_from", "checkpoints", "rows_before"),
        "nothing_read",
    )
)
_MALFORMED = (ValueError, TypeError, AttributeError, RecursionError)
_NO_POSITIONS = np.empty(0, np.int64)


class BookmarkError(ValueError):
    """A bookmark in the ledger is not one that this version reads."""


class Checkpoint(NamedTuple):
    """What one look at a database showed: its next transaction id, and the newest position."""

    next_transaction: int
    newest: int


@dataclass(frozen=True, slots=True, eq=False)
class RememberedRows:
    """Positions of rows and 16 bytes for each that identify it, in the same order."""

    positions: npt.NDArray[np.int64] = field(default_factory=lambda: _NO_POSITIONS)
    digests: bytes = b""

    def __len__(self) -> int:
        return len(self.positions)

    def since(self, position: int) -> RememberedRows:
        """Return the remembered rows at a position or after it."""
        chosen = self.positions >= position
        return RememberedRows(self.positions[chosen], self._rows()[chosen].tobytes())

    def ordered(self) -> RememberedRows:
        """Return the remembered rows by position."""
        order = np.argsort(self.positions, kind="stable")
        return RememberedRows(self.positions[order], self._rows()[order].tobytes())

    def _rows(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.digests, np.uint8).reshape(-1, DIGEST_BYTES)

    @classmethod
    def of(cls, parts: Sequence[RememberedRows]) -> RememberedRows:
        """Return the rows of several; `UsageError` if a bookmark would remember too many."""
        count = sum(map(len, parts))
        if count > MOST_REMEMBERED:
            raise UsageError(
                f"[incremental]: {count} rows are within the lag or wait for open transactions, "
                f"and a bookmark remembers at most {MOST_REMEMBERED}: give a shorter lag"
            )
        positions = np.concatenate([_NO_POSITIONS, *(each.positions for each in parts)])
        return cls(positions, b"".join(each.digests for each in parts))


@dataclass(frozen=True, slots=True, eq=False)
class Bookmark:
    """The position up to which a source is read, and the rows that are remembered."""

    column: str | None
    kind: str
    end: int
    remembered_from: int | None = None
    identity: tuple[str, ...] = ()
    rows: RememberedRows = field(default_factory=RememberedRows)
    replaces: Mapping[int, int] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    unsettled_from: int | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    rows_before: int | None = None  # None: not counted
    nothing_read: bool = False

    @property
    def known_from(self) -> int:
        """Where what is remembered starts; rows before it are never looked at again."""
        return self.end if self.remembered_from is None else min(self.remembered_from, self.end)

    def to_text(self) -> str:
        """Return the text that the ledger keeps."""
        rows = self.rows.ordered()
        steps = np.diff(rows.positions, prepend=np.int64(0))
        optional = {
            "types": list(self.types),
            "replaces": {str(number): offset for number, offset in self.replaces.items()},
            "tables": dict(self.tables),
            "checkpoints": [list(each) for each in self.checkpoints],
        }
        content = {
            "version": _VERSIONS[-1],
            "column": self.column,
            "kind": self.kind,
            "end": self.end,
            "remembered_from": self.remembered_from,
            "identity": list(self.identity),
            "positions": base64.b64encode(zlib.compress(steps.astype("<i8").tobytes())).decode(),
            "digests": base64.b64encode(rows.digests).decode(),
            **{name: value for name, value in optional.items() if value},
            **({} if self.unsettled_from is None else {"unsettled_from": self.unsettled_from}),
            **({} if self.rows_before is None else {"rows_before": self.rows_before}),
            **({"nothing_read": True} if self.nothing_read else {}),
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
        if not isinstance(content, dict) or content.get("version") not in _VERSIONS:
            raise ValueError(f"expected an object of version {_VERSIONS[-1]}")
        if set(content) - _OPTIONAL != _FIELDS or content["kind"] not in KINDS:
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
            _integer_or_none(content["remembered_from"]),
            tuple(map(str, content["identity"])),
            RememberedRows(np.cumsum(np.frombuffer(steps, "<i8"), dtype=np.int64), digests),
            {int(number): _integer(of) for number, of in content.get("replaces", {}).items()},
            tuple(map(str, content.get("types", []))),
            {str(name): str(of) for name, of in content.get("tables", {}).items()},
            _integer_or_none(content.get("unsettled_from")),
            tuple(
                Checkpoint(_integer(next_id), _integer(newest))
                for next_id, newest in content.get("checkpoints", [])
            ),
            _integer_or_none(content.get("rows_before")),
            content.get("nothing_read", False) is True,
        )


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r} is not an integer of 64 bits")
    return value


def _integer_or_none(value: object) -> int | None:
    return None if value is None else _integer(value)
