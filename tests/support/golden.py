"""Golden partition directories: which there are, where they lie, what Kafka served of them.

Ids are strings, so that they read well in a test report: a case is ``4.3.0/txn``, a partition of
it ``4.3.0/txn:payments-0`` or, where the case has states, ``4.3.0/crash-kill:before/crash-0``.
Both are known from the birth certificates beside the archives; nothing is unpacked for them.
See ``tests/golden/README.md``.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import tarfile
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tests.support.batches import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Isolation = Literal["uncommitted", "committed"]

CASES_DIRECTORY = Path(__file__).parents[1] / "golden" / "cases"
NANOSECONDS = 1_000_000_000
FILE_MODE, DIRECTORY_MODE = 0o444, 0o555
SHOWN_CHARACTERS = 80
_DIRECTORY_NAME = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)(\.[0-9a-f]{32}-delete)?")


class Holds(StrEnum):
    """What a folder's ``.log`` files hold, next to the lines of its uncommitted expected file."""

    EXACTLY = "the same records"
    MORE_AT_THE_START = "also records below the log start offset, which are not served"
    ONLY_THE_START = "only the first of them: a replica that stopped early"
    ONLY_THE_END = "only the last of them: the others are in the remote store"
    OTHER_RECORDS = "other records at the same offsets: a replica that diverged"
    UNKNOWN = "there is no expected file: Kafka never served this folder"


# Those with an expected file which is not simply the folder's content. The dumps prove it,
# see tests/unit/test_golden_support.py.
_NOT_EXACTLY = {
    "3.9.1/replicas:broker-3/ledger-0": Holds.ONLY_THE_START,
    "3.9.1/replicas:broker-3/ledger-1": Holds.ONLY_THE_START,
    "3.9.1/replicas-diverged:broker-1/ledger-unclean-0": Holds.OTHER_RECORDS,
    "3.9.1/replicas-diverged:broker-2/ledger-unclean-0": Holds.OTHER_RECORDS,
    "4.3.0/delete-records:after/del-recs-0": Holds.MORE_AT_THE_START,
    "4.3.0/tiered:archive-0": Holds.ONLY_THE_END,
    "4.3.0/tiered:archive-txn-0": Holds.ONLY_THE_END,
}


@dataclass(frozen=True)
class GoldenPartition:
    """One partition folder of one state of one unpacked case."""

    broker: str
    scenario: str
    state: str  # "", "before", "after", "after2", "broker-1" …
    name: str  # of the folder: <topic>-<partition>, a deleted topic's with its suffix
    case_directory: Path
    holds: Holds
    # The entry of offsets.json, None where Kafka never served this folder. That of the
    # replica cases is what the last leader said, whichever broker's folder this is.
    offsets: Mapping[str, Any] | None = field(compare=False)

    @property
    def log_directory(self) -> Path:
        """The folder that stands for Kafka's log dir: partition folders and checkpoints."""
        return self.case_directory / self.state

    @property
    def directory(self) -> Path:
        """The partition folder."""
        return self.log_directory / self.name

    @property
    def topic(self) -> str:
        return self._name_part("topic")

    @property
    def partition(self) -> int:
        return int(self._name_part("partition"))

    def expected_path(self, isolation: Isolation) -> Path | None:
        """Return the file of records Kafka served; None where it never served this folder.

        ``holds`` says whether the folder holds just these.
        """
        return _find(self, f"expected.{self.name}.{isolation}.jsonl")

    def _name_part(self, group: str) -> str:
        match = _DIRECTORY_NAME.fullmatch(self.name)
        if match is None:
            raise ValueError(f"{self.name} is not the name of a partition folder")
        return match[group]


def _find(partition: GoldenPartition, name: str) -> Path | None:
    """Return a file of the state's folder or, for replicas, of the case's own."""
    for directory in (partition.log_directory, partition.case_directory):
        if (path := directory / name).is_file():
            return path
    return None


def golden_cases() -> list[str]:
    """Return the ids of all cases, sorted."""
    return list(_partition_tables())


def golden_partitions(*holds: Holds) -> list[str]:
    """Return the ids of the partitions of all cases, or of those that hold what is named."""
    return [
        partition_id
        for partitions in _partition_tables().values()
        for partition_id, what in partitions.items()
        if not holds or what in holds
    ]


def certificate_path(case_id: str) -> Path:
    """Return the birth certificate in the repository."""
    return CASES_DIRECTORY / f"{case_id}.toml"


def archive_path(case_id: str) -> Path:
    """Return the archive in the repository."""
    return CASES_DIRECTORY / f"{case_id}.tar.xz"


@cache
def _partition_tables() -> dict[str, dict[str, Holds]]:
    """Return case id → partition id → what it holds, from the certificates."""
    tables = {}
    for path in sorted(CASES_DIRECTORY.glob("*/*.toml")):
        case_id = path.relative_to(CASES_DIRECTORY).with_suffix("").as_posix()
        # Nine tenths of a certificate are checksums, which would only cost time here.
        head, _, _ = path.read_text("utf-8").partition("\n[sha256]")
        tables[case_id] = {
            partition_id: _NOT_EXACTLY.get(partition_id, what)
            for partition_id, what in _stated_partitions(case_id, tomllib.loads(head))
        }
    return tables


def _stated_partitions(case_id: str, certificate: Mapping[str, Any]) -> Iterator[tuple[str, Holds]]:
    for table in certificate["partition"]:
        state, name = table["state"], table["name"]
        # The table of a replica counts no expected records: the file is the leader's.
        is_served = "expected_uncommitted" in table or state.startswith("broker-")
        yield (
            f"{case_id}:{state}/{name}" if state else f"{case_id}:{name}",
            Holds.EXACTLY if is_served else Holds.UNKNOWN,
        )


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file or folder of a case as its archive has it."""

    modified_ns: int
    contents: bytes | None  # None: a folder

    @property
    def state(self) -> tuple[int, str]:
        digest = "" if self.contents is None else hashlib.sha256(self.contents).hexdigest()
        return self.modified_ns, digest


def _read_archive(path: Path) -> dict[str, _Entry]:
    """Return the entries by their path in the case, a folder before what is in it."""
    entries = {}
    with tarfile.open(path, "r:xz") as archive:
        for member in archive:
            _, _, name = member.name.partition("/")
            seconds, _, fraction = member.pax_headers["mtime"].partition(".")
            modified_ns = int(seconds) * NANOSECONDS + int(fraction.ljust(9, "0"))
            stream = archive.extractfile(member)
            entries[name] = _Entry(modified_ns, stream.read() if stream else None)
    return entries


def _write_entries(entries: Mapping[str, _Entry], directory: Path) -> None:
    """Make the files and folders, read-only, with their modification times."""
    for name, entry in entries.items():
        if entry.contents is None:
            (directory / name).mkdir(exist_ok=True)
        else:
            (directory / name).write_bytes(entry.contents)
    for name in reversed(list(entries)):  # a folder after all that is written into it
        _finish(directory / name, entries[name])


def _finish(path: Path, entry: _Entry) -> None:
    os.utime(path, ns=(entry.modified_ns, entry.modified_ns))
    path.chmod(DIRECTORY_MODE if entry.contents is None else FILE_MODE)


class GoldenRoot:
    """The folder below which cases are unpacked, each when it is first asked for.

    Several processes may share one: a case appears by a rename, made under a file lock. Within a
    process it is used by one thread.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._states: dict[str, dict[str, tuple[int, str]]] = {}
        self._in_use: set[str] = set()

    def case(self, case_id: str) -> Path:
        """Return the folder of an unpacked case; never write there."""
        if case_id not in self._states:
            entries = _read_archive(archive_path(case_id))
            self._ensure_unpacked(case_id, entries)
            self._states[case_id] = {name: entry.state for name, entry in entries.items()}
        self._in_use.add(case_id)
        return self._directory / case_id

    def partition(self, partition_id: str) -> GoldenPartition:
        """Return a partition of a case, which is unpacked if it was not."""
        case_id, _, place = partition_id.partition(":")
        broker, _, scenario = case_id.partition("/")
        state, _, name = place.rpartition("/")
        partition = GoldenPartition(
            broker=broker,
            scenario=scenario,
            state=state,
            name=name,
            case_directory=self.case(case_id),
            holds=_partition_tables()[case_id][partition_id],
            offsets=None,
        )
        path = _find(partition, "offsets.json")
        offsets = json.loads(path.read_text("utf-8")) if path else {}
        return replace(partition, offsets=offsets.get(name))

    def begin_watching(self) -> None:
        """Forget which cases were used, so that ``changes`` tells of those used from here on."""
        self._in_use.clear()

    def changes(self, *, of_all_ever_used: bool = False) -> list[str]:
        """Return a line for each file or folder that is not as it was unpacked."""
        cases = self._states if of_all_ever_used else self._in_use
        return [line for case_id in sorted(cases) for line in self._changes_of(case_id)]

    def _ensure_unpacked(self, case_id: str, entries: Mapping[str, _Entry]) -> None:
        target = self._directory / case_id
        target.parent.mkdir(parents=True, exist_ok=True)
        with (self._directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.exists():
                return
            # Beside the target: to move a read-only folder into another one is not allowed.
            unfinished = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
            _write_entries(entries, unfinished)
            unfinished.rename(target)

    def _changes_of(self, case_id: str) -> Iterator[str]:
        case = self._directory / case_id
        unpacked = self._states[case_id]
        found = {path.relative_to(case).as_posix(): path for path in case.rglob("*")}
        found[""] = case
        for name in sorted(unpacked.keys() | found.keys()):
            if name not in found:
                yield f"{case / name}: removed"
            elif name not in unpacked:
                yield f"{case / name}: added"
            else:
                modified_ns, digest = unpacked[name]
                stat = found[name].stat()
                if digest and digest != hashlib.sha256(found[name].read_bytes()).hexdigest():
                    yield f"{case / name}: contents changed, it has {stat.st_size} bytes now"
                elif modified_ns != stat.st_mtime_ns:
                    yield f"{case / name}: modification time changed"


def read_expected(path: Path) -> list[dict[str, Any]]:
    """Return the lines of an expected file."""
    with path.open(encoding="utf-8", newline="\n") as lines:  # a header may hold other newlines
        return [json.loads(line) for line in lines]


def stored_of(line: dict[str, Any]) -> Stored:
    """Return the record of a line of what Kafka served."""

    def decoded(text: str | None) -> bytes | None:
        return None if text is None else base64.b64decode(text)

    headers = tuple((name, decoded(value)) for name, value in line["headers"])
    return Stored(
        line["offset"],
        line["timestamp"],
        decoded(line["key"]),
        decoded(line["value"]),
        headers,
        line["timestampType"],
    )


def differences(
    expected: Sequence[Mapping[str, Any]], actual: Iterable[Mapping[str, Any]], limit: int = 5
) -> list[str]:
    """Return what differs, readable, at most about ``limit`` lines a kind; empty: nothing does.

    The records of ``actual`` have the keys of an expected line, ``value`` whole and base64
    encoded also where the line has ``valueSha256`` and ``valueSize``; headers may be tuples.
    """
    actual = list(actual)
    lines = _offset_differences(
        [line["offset"] for line in expected], [record["offset"] for record in actual], limit
    )
    by_offset = {record["offset"]: record for record in actual}
    fields = [
        difference
        for line in expected
        if line["offset"] in by_offset
        for difference in _field_differences(line, by_offset[line["offset"]])
    ]
    return lines + _first(fields, limit)


def _offset_differences(expected: list[int], actual: list[int], limit: int) -> list[str]:
    if expected == actual:
        return []
    lines = [f"{len(expected)} records expected, {len(actual)} read"]
    missing, unexpected = Counter(expected) - Counter(actual), Counter(actual) - Counter(expected)
    for what, offsets in (("missing", missing), ("not expected or repeated", unexpected)):
        if offsets:
            lines += [f"offsets {what}: {', '.join(_first(sorted(offsets.elements()), limit))}"]
    if not missing and not unexpected:
        pairs = enumerate(zip(expected, actual, strict=True))
        place = next(place for place, (stated, found) in pairs if stated != found)
        lines += [f"another order: record {place} has {actual[place]}, not {expected[place]}"]
    return lines


def _field_differences(line: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    record = dict(record)
    if "headers" in record:
        record["headers"] = [list(header) for header in record["headers"]]
    if "valueSha256" in line and "value" in record:
        value = record.pop("value")
        record |= _size_and_digest(value)
    for key in dict.fromkeys([*line, *record]):
        stated, found = line.get(key, "no such field"), record.get(key, "no such field")
        if stated != found:
            yield (
                f"offset {line['offset']}: {key} is {_abbreviated(found)}, "
                f"expected {_abbreviated(stated)}"
            )


def _size_and_digest(value: str | None) -> dict[str, Any]:
    if value is None:
        return {"valueSha256": None, "valueSize": None}
    contents = base64.b64decode(value, validate=True)
    return {"valueSha256": hashlib.sha256(contents).hexdigest(), "valueSize": len(contents)}


def _abbreviated(value: object) -> str:
    text = repr(value)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _first(items: Sequence[object], limit: int) -> list[str]:
    """Return the first items as text, and how many more there are."""
    shown = [str(item) for item in items[:limit]]
    return [*shown, f"… and {len(items) - limit} more"] if len(items) > limit else shown
