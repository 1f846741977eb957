"""Pack the two directories that ``pylog demo`` unpacks.

    python -m tests.golden.pack_demo

``intact/`` is the log directory of one of the cases, at the time of its records, see `at_one_time`.
``damaged/`` is the same with the damage of `damage`. Each file of ``damaged/`` follows its twin, so
that gzip finds it.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pylog.cli.commands.demo import ARCHIVE, DAMAGED, INTACT
from tests.support.batches import crc32c

CASE = Path(__file__).parent / "cases" / "4.3.0" / "internal-logdir.tar.xz"
_OF_TESTS = ("case.toml", "offsets.json", "dump", "expected")


# The case was made with records of 2024; the broker's own times (transactions, their markers, what
# groups committed, the cluster's metadata) are of the two minutes in which it ran.
_RAN = datetime(2026, 11, 21, 0, 18, 30, tzinfo=UTC), datetime(2026, 11, 21, 0, 20, tzinfo=UTC)
_AFTER_THE_RECORDS = datetime(2024, 11, 7, 17, 21, 14, tzinfo=UTC)
"""When the broker starts instead: its first transaction then ends after the last record."""
_INSTANT = re.compile(rb"(?=\x00\x00\x01\xa1\xfb...)", re.DOTALL)


def at_one_time(files: dict[str, bytes]) -> None:
    """Move the broker's own times, in all files, to the time of the records."""
    first, last = (round(each.timestamp() * 1000) for each in _RAN)
    shift = (_RAN[0] - _AFTER_THE_RECORDS) // timedelta(milliseconds=1)
    for name, content in files.items():
        if not name.endswith((".log", ".timeindex", ".snapshot", ".checkpoint")):
            continue
        moved = bytearray(content)
        for found in _INSTANT.finditer(content):
            (instant,) = struct.unpack_from(">q", content, found.start())
            if first <= instant <= last:
                struct.pack_into(">q", moved, found.start(), instant - shift)
        if moved != content:
            _write_checksums(name, moved)
            files[name] = bytes(moved)


def _write_checksums(name: str, content: bytearray) -> None:
    """Make the checksums of batches, or that of a producer snapshot, those of the content."""
    if name.endswith(".snapshot"):
        struct.pack_into(">I", content, 2, crc32c(content[6:]))
    elif name.endswith((".log", ".checkpoint")):
        at = 0
        while at < len(content):
            end = at + 12 + int.from_bytes(content[at + 8 : at + 12], "big")
            struct.pack_into(">I", content, at + 17, crc32c(content[at + 21 : end]))
            at = end


def damage(files: dict[str, bytes]) -> None:
    """Damage a log directory, given as contents by name, as a failing disk and a crash do."""
    flipped = bytearray(files["orders-0/00000000000000000000.log"])
    flipped[2000] ^= 1
    files["orders-0/00000000000000000000.log"] = bytes(flipped)
    del files["invoices-eu-0/00000000000000000000.index"]
    # A crash: the last batch of orders-1 is torn, what goes with it was never written, and the
    # checkpoint of high watermarks is of a time at which all of it was served.
    del files[".kafka_cleanshutdown"], files["orders-1/00000000000000000049.snapshot"]
    for suffix, size in (("log", 2700), ("index", 8), ("timeindex", 12)):
        name = f"orders-1/00000000000000000016.{suffix}"
        files[name] = files[name][:size]
    flushed = files["recovery-point-offset-checkpoint"]
    files["recovery-point-offset-checkpoint"] = flushed.replace(b"orders 1 49", b"orders 1 16")


def demo_tar() -> bytes:
    """Return the archive before it is compressed."""
    with tarfile.open(CASE) as case:
        members = {
            member.name.partition("/")[2]: member
            for member in case.getmembers()
            if "/" in member.name and not member.name.split("/")[1].startswith(_OF_TESTS)
        }
        files = {
            name: stream.read()
            for name, member in members.items()
            if (stream := case.extractfile(member)) is not None
        }
    at_one_time(files)
    damaged = dict(files)
    damage(damaged)
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in files:
            for directory, contents in ((INTACT, files), (DAMAGED, damaged)):
                if name in contents:
                    member = tarfile.TarInfo(f"{directory}/{name}")
                    member.mtime, member.size = int(members[name].mtime), len(contents[name])
                    archive.addfile(member, io.BytesIO(contents[name]))
    return tar.getvalue()


def main() -> None:
    """Write the archive into the package."""
    ARCHIVE.write_bytes(gzip.compress(demo_tar(), mtime=0))


if __name__ == "__main__":
    main()
