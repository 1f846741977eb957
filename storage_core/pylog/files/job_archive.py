"""``.pylog-ledger-<32 hex digits>``: written jobs that have left the ledger, kept for good.

A file is never changed once the ledger names it. Big-endian:

========= ========================================================================================
part      content
========= ========================================================================================
header    magic ``pylogjob``, version (4 bytes), number of records (8)
index     a row for each block of 256 records, the last one may have fewer: key of its first record
          (16), CRC-32C of the block (4)
records   56 bytes each, sorted by key, no key twice
========= ========================================================================================

======== ===== ===================================================================================
position width field of a record
======== ===== ===================================================================================
0        16    key: a digest of the job's id, and of whether it has batches
16       8     number of the newest batch + 1; 0 for a job that writes once
24       16    digest of the fingerprint; zeros for none
40       8     when it was committed, ms
48       8     number of records that it appended
======== ===== ===================================================================================

The ledger has the number of records and the CRC-32C of header and index. So a look-up reads the
index and one block, and has checked all that its answer depends on.

What the ledger gives away becomes a new file, together with the files that are not larger: as in a
log-structured merge tree, a record is copied a few times in its life, and no file has more than
`MOST_ARCHIVED` records, so that no commit takes long.
"""

from __future__ import annotations

import hashlib
import logging
import re
import struct
import uuid
from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.file_names import LEDGER
from pylog.files.staged_files import MAX_CRC, as_integer, as_object
from pylog.files.storage import open_file
from pylog.lazy_modules import LazyModule
from pylog.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.files.byte_source import ByteSource
    from pylog.files.durable_io import DurableIO
    from pylog.native import checksum
else:
    checksum = LazyModule("pylog.native.checksum")

MOST_ARCHIVED = 1 << 16
_VERSION = 1
_MAGIC = b"pylogjob"
_HEADER = struct.Struct(">8sIQ")
_ROW = struct.Struct(">16sI")
_RECORD = struct.Struct(">16sQ16sqq")
_KEY_BYTES = 16
_BLOCK_RECORDS = 256
_BLOCK_BYTES = _BLOCK_RECORDS * _RECORD.size
_NO_FINGERPRINT = bytes(_KEY_BYTES)
_NAME = re.compile(r"\.pylog-ledger-[0-9a-f]{32}")
_key_of = itemgetter(slice(_KEY_BYTES))
_LOGGER = logging.getLogger(__name__)

WHAT_IS_AT_STAKE = (
    f"restore the file; if it is lost, take its name out of {LEDGER}: jobs that it has are then "
    "not known, and would be written twice if they ran again"
)


def archive_key(job_id: str, *, has_batches: bool) -> bytes:
    """Return the key of a job."""
    return _digest(f"{'batches' if has_batches else 'once'}\0{job_id}")


def fingerprint_digest(fingerprint: str | None) -> bytes:
    """Return the digest that the archive keeps of a fingerprint."""
    return _NO_FINGERPRINT if fingerprint is None else _digest(fingerprint)


def _digest(text: str) -> bytes:
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=_KEY_BYTES).digest()


class WrittenJob(NamedTuple):
    """What is kept for good of a job that writes once, or of the newest batch of a query."""

    key: bytes
    batch_id: int | None
    fingerprint: bytes
    time_ms: int
    record_count: int

    @property
    def has_fingerprint(self) -> bool:
        """Whether the job was entered with a fingerprint."""
        return self.fingerprint != _NO_FINGERPRINT

    def to_bytes(self) -> bytes:
        """Return the record of the job."""
        number = 0 if self.batch_id is None else self.batch_id + 1
        return _RECORD.pack(self.key, number, *self[2:])

    @classmethod
    def from_bytes(cls, record: bytes) -> WrittenJob:
        """Return the job of a record."""
        key, number, *rest = _RECORD.unpack(record)
        return cls(key, number - 1 if number else None, *rest)


class JobArchive(NamedTuple):
    """An archive file, as the ledger names it."""

    name: str
    job_count: int
    checksum: int  # of header and index

    @classmethod
    def from_json(cls, content: object) -> JobArchive:
        """Return the archive that a ledger describes."""
        values = as_object(content, cls._fields, "archive of written jobs")
        if not isinstance(values["name"], str) or _NAME.fullmatch(values["name"]) is None:
            msg = f"{values['name']!r} is not the name of an archive of written jobs"
            raise ValueError(msg)
        return cls(
            values["name"],
            as_integer(values["job_count"], "job_count", 1),
            as_integer(values["checksum"], "checksum", 0, MAX_CRC),
        )


def find_archived(
    log_directory: str, archives: Iterable[JobArchive], key: bytes
) -> WrittenJob | None:
    """Return what archives know of a job; of several batches the newest."""
    found = (_find(log_directory, each, key) for each in archives)
    newest = max((each for each in found if each is not None), default=None)
    return None if newest is None else WrittenJob.from_bytes(newest)


def _find(log_directory: str, archive: JobArchive, key: bytes) -> bytes | None:
    path = _path(log_directory, archive.name)
    with open_file(path) as file:
        index = _read_index(file, archive, path)
        block = bisect_right(index, key, key=itemgetter(0)) - 1
        if block < 0:
            return None
        records = _read_block(file, archive, path, index, block)
    at = bisect_right(records, key, key=_key_of) - 1
    return records[at] if records[at].startswith(key) else None


def read_archive(log_directory: str, archive: JobArchive) -> list[bytes]:
    """Return the records of an archive, once all of it is known to be intact."""
    path = _path(log_directory, archive.name)
    with open_file(path) as file:
        index = _read_index(file, archive, path)
        return [
            record
            for block in range(len(index))
            for record in _read_block(file, archive, path, index, block)
        ]


def archive_jobs(
    io: DurableIO, log_directory: str, archives: Iterable[JobArchive], jobs: Iterable[WrittenJob]
) -> tuple[JobArchive, ...]:
    """Write jobs to a new archive, with those of archives that it replaces; return what there is.

    The new file is on the disk then, and none is removed: they count until the ledger is replaced.
    """
    records = [each.to_bytes() for each in jobs]
    kept = []
    for each in sorted(archives, key=lambda archive: archive.job_count):
        if each.job_count > len(records) or each.job_count + len(records) > MOST_ARCHIVED:
            kept.append(each)
            continue
        try:
            records += read_archive(log_directory, each)
        except (CorruptCheckpointError, SegmentVanishedError) as error:
            # It says so to whoever looks up a job; this one is written, and has to be entered.
            _LOGGER.warning("an archive of written jobs stays as it is: %s", error)
            kept.append(each)
    newest = {record[:_KEY_BYTES]: record for record in sorted(records)}
    return (_write(io, log_directory, list(newest.values())), *kept)


def _write(io: DurableIO, log_directory: str, records: Sequence[bytes]) -> JobArchive:
    blocks = [
        b"".join(records[first : first + _BLOCK_RECORDS])
        for first in range(0, len(records), _BLOCK_RECORDS)
    ]
    rows = [_ROW.pack(block[:_KEY_BYTES], checksum.crc32c(block)) for block in blocks]
    index = b"".join([_HEADER.pack(_MAGIC, _VERSION, len(records)), *rows])
    name = f"{LEDGER}-{uuid.uuid4().hex}"
    io.write_file(_path(log_directory, name), b"".join([index, *blocks]), sync=True)
    io.sync_directory(log_directory)
    return JobArchive(name, len(records), checksum.crc32c(index))


def _read_index(file: ByteSource, archive: JobArchive, path: str) -> list[tuple[bytes, int]]:
    """Return the first key and the checksum of each block."""
    size_bytes = _index_bytes(archive)
    expected = size_bytes + archive.job_count * _RECORD.size
    if file.size() != expected:
        raise _damaged(f"has {file.size()} bytes, expected {expected}", path)
    content = file.read_at(0, size_bytes)
    found = checksum.crc32c(content)
    if found != archive.checksum:
        raise _damaged(f"has an index with checksum {found:#x}, not {archive.checksum:#x}", path)
    header = _HEADER.unpack_from(content)
    if header != (_MAGIC, _VERSION, archive.job_count):
        raise _damaged(f"has header {header}, expected {_MAGIC!r} in version {_VERSION}", path)
    index = list(_ROW.iter_unpack(content[_HEADER.size :]))
    _ensure_sorted([key for key, _ in index], path)
    return index


def _read_block(
    file: ByteSource, archive: JobArchive, path: str, index: Sequence[tuple[bytes, int]], block: int
) -> list[bytes]:
    """Return the records of a block."""
    position = _index_bytes(archive) + block * _BLOCK_BYTES
    rest_bytes = (archive.job_count - block * _BLOCK_RECORDS) * _RECORD.size
    content = file.read_at(position, min(_BLOCK_BYTES, rest_bytes))
    first, crc = index[block]
    if checksum.crc32c(content) != crc:
        raise _damaged(f"has a wrong checksum in block {block}", path, position)
    size = _RECORD.size
    records = [content[at : at + size] for at in range(0, len(content), size)]
    following = [key for key, _ in index[block + 1 : block + 2]]
    _ensure_sorted([first, *map(_key_of, records[1:]), *following], path)
    if not records[0].startswith(first):
        raise _damaged(f"has another first key in block {block} than in its index", path, position)
    return records


def _ensure_sorted(keys: list[bytes], path: str) -> None:
    if any(key >= following for key, following in pairwise(keys)):
        raise _damaged("is not sorted", path)


def _index_bytes(archive: JobArchive) -> int:
    return _HEADER.size - (-archive.job_count // _BLOCK_RECORDS) * _ROW.size


def _damaged(what: str, path: str, position: int | None = None) -> CorruptCheckpointError:
    reason = f"archive of written jobs {what}; {WHAT_IS_AT_STAKE}"
    return CorruptCheckpointError(reason, path, position)


def _path(log_directory: str, name: str) -> str:
    return join(log_directory, name)
