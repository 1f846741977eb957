"""Pack the two directories that ``pylog demo`` unpacks.

    python -m tests.golden.pack_demo

``intact/`` is the log directory of one of the cases, ``damaged/`` the same with the damage of
`damage`. Each file of ``damaged/`` follows its twin, so that gzip finds it.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from pylog.cli.commands.demo import ARCHIVE, DAMAGED, INTACT

CASE = Path(__file__).parent / "cases" / "4.3.0" / "internal-logdir.tar.xz"
_OF_TESTS = ("case.toml", "offsets.json", "dump", "expected")


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
