"""Log directories whose shape decides what work on them costs: many logs, many segments, damage.

As a broker leaves them after a clean stop, but for the damage.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.data_sets import QUICK_DIVISOR, Bench
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_segment

_PARTITIONS = 5_000
_SEGMENTS = 20_000
_RECORDS = 10
_DAMAGES = 20


def _write_many(directory: Path, partitions: int) -> None:
    """Write partitions of 100 topics, each of 30 records, and their side files."""
    bases = range(0, 3 * _RECORDS, _RECORDS)
    batches = [batch_v2(plain_records(base, _RECORDS, value_size=60)) for base in bases]
    lines = []
    for number in range(partitions):
        topic, partition = f"topic{number % 100:02}", number // 100
        place = directory / f"{topic}-{partition}"
        write_segment(place, 0, batches)
        (place / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        lines.append(f"{topic} {partition} {3 * _RECORDS}\n")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (directory / name).write_text(f"0\n{partitions}\n{''.join(lines)}")
    (directory / ".kafka_cleanshutdown").touch()


def _write_segments(directory: Path, segments: int) -> None:
    """Write one partition whose segments have one batch each."""
    for base in range(0, segments * _RECORDS, _RECORDS):
        write_segment(directory / "segments-0", base, [batch_v2(plain_records(base, _RECORDS))])


def _write_damage(bench: Bench, directory: Path) -> None:
    """Write a copy of ``s100-lz4`` in which some batches, evenly spread, have a wrong byte."""
    source = bench.directory(bench.base(100, "lz4").name)
    shutil.copytree(source, directory)
    for log in directory.glob("*/*.log"):
        content = bytearray(log.read_bytes())
        step = len(content) // _DAMAGES
        for at in range(step // 2, len(content), step):
            content[at] ^= 0xFF
        log.write_bytes(content)


def _makers(bench: Bench) -> dict[str, Callable[[Path], None]]:
    divisor = QUICK_DIVISOR if bench.quick else 1
    return {
        "many-partitions": lambda place: _write_many(place, _PARTITIONS // divisor),
        "many-segments": lambda place: _write_segments(place, _SEGMENTS // divisor),
        "damaged": lambda place: _write_damage(bench, place),
    }


SHAPED_SETS = ("many-partitions", "many-segments", "damaged")


def shaped_set(bench: Bench, name: str) -> None:
    """Make a set if it is missing."""
    directory = bench.directory(name)
    done = directory.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(directory, ignore_errors=True)
        _makers(bench)[name](directory)
        done.touch()
