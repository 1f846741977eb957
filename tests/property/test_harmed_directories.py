"""A writing command costs no intact batch, whatever has been done to the directory.

The oracle is the bytes: each batch that was written, has unique keys and is still in some ``.log``
file of its partition before the command has to be in one after it. What a command has to leave
alone is left as it was to the byte.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogStorageError, RecoveryRefusedError
from pylog.log.log_manager import LogManager
from tests.support.batches import Stored, batch_v2, message, wrapper
from tests.support.log_files import (
    mark_clean_shutdown,
    write_high_watermarks,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Counted
    from tests.support.batches import Built

NOW_MS = 1_700_000_000_000
DIRECTORIES = 200
TOPICS = ("a", "b", "c")
COMPACT = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
}
KEEP = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


# ---- directories


def draw_batch(draw: random.Random, offset: int, kind: str) -> Built:
    records = [
        Stored(offset + place, NOW_MS, b"key %d" % (offset + place), draw.randbytes(20))
        for place in range(draw.randint(1, 4))
    ]
    if kind == "v2":
        return batch_v2(records, codec=draw.choice(["none", "none", "gzip", "zstd"]))
    if kind == "wrapper":
        return wrapper(records, magic=1, codec="gzip")
    return message(records[0], magic=1)


def draw_partition(draw: random.Random, directory: Path, name: str) -> list[bytes]:
    """Write a partition; return its batches."""
    kind = draw.choice(["v2", "v2", "v2", "v1", "wrapper"])
    segments: dict[int, list[Built]] = {}
    offset = 0
    for _ in range(draw.randint(1, 5)):
        segments[offset] = batches = []
        for _ in range(draw.randint(1, 6)):
            batches.append(draw_batch(draw, offset, kind))
            offset = batches[-1].last_offset + 1
    write_partition(directory, segments, name=name)
    return [each.data for batches in segments.values() for each in batches]


# ---- harms


def some_log(draw: random.Random, partition: Path) -> Path:
    logs = sorted(partition.glob("*.log"))
    return draw.choice([each for each in logs if each.stat().st_size] or logs[:1])


def overwrite(draw: random.Random, partition: Path, data: bytes) -> None:
    path = some_log(draw, partition)
    content = bytearray(path.read_bytes() or b"\0")
    at = draw.randrange(len(content))
    content[at : at + len(data)] = data[: len(content) - at]
    path.write_bytes(content)


def flip(draw: random.Random, partition: Path) -> None:
    overwrite(draw, partition, draw.randbytes(1))


def zero_range(draw: random.Random, partition: Path) -> None:
    overwrite(draw, partition, bytes(draw.choice([1, 20, 100, 4096])))


def garbage(draw: random.Random, partition: Path) -> None:
    overwrite(draw, partition, draw.randbytes(draw.choice([8, 60, 300])))


def add_tail(draw: random.Random, partition: Path) -> None:
    path = some_log(draw, partition)
    tails = (bytes(5), bytes(17), bytes(18), bytes(4096), draw.randbytes(40))
    path.write_bytes(path.read_bytes() + draw.choice(tails))


def cut(draw: random.Random, partition: Path) -> None:
    path = some_log(draw, partition)
    path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size + 1)])


def swap_segments(draw: random.Random, partition: Path) -> None:
    logs = sorted(partition.glob("*.log"))
    if len(logs) > 1:
        one, other = draw.sample(logs, 2)
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)


def remove_log(draw: random.Random, partition: Path) -> None:
    some_log(draw, partition).unlink()


def empty_log(draw: random.Random, partition: Path) -> None:
    some_log(draw, partition).write_bytes(b"")


def repeat_log(draw: random.Random, partition: Path) -> None:
    path = some_log(draw, partition)
    path.write_bytes(path.read_bytes() * 2)


def spoil_side_file(draw: random.Random, partition: Path) -> None:
    files = [*partition.glob("*index"), *partition.glob("*.snapshot")]
    for path in draw.sample(sorted(files), min(len(files), draw.randint(1, 3))):
        match draw.randrange(4):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(draw.randbytes(24))
            case 2:
                path.write_bytes(path.read_bytes() + bytes(800))
            case _:
                path.write_bytes(b"")


def spoil_epochs(draw: random.Random, partition: Path) -> None:
    text = draw.choice(["", "nonsense\n", "0\n1\n5 9000\n", "0\n2\n3 10\n1 0\n"])
    (partition / "leader-epoch-checkpoint").write_text(text)


def start_after_the_end(draw: random.Random, partition: Path) -> None:
    topic = partition.name.rpartition("-")[0]
    write_log_start_offsets(partition.parent, {(topic, 0): 10_000})


HARMS: tuple[Callable[[random.Random, Path], None], ...] = (
    flip,
    zero_range,
    garbage,
    add_tail,
    cut,
    swap_segments,
    remove_log,
    empty_log,
    repeat_log,
    spoil_side_file,
    spoil_epochs,
    start_after_the_end,
)


def draw_directory(draw: random.Random, directory: Path) -> dict[str, list[bytes]]:
    """Write a directory and harm it; return all batches of each partition."""
    batches = {f"{topic}-0": draw_partition(draw, directory, f"{topic}-0") for topic in TOPICS}
    lines = [f"{topic} 0 {draw.choice([0, 0, 3, 10, 5000])}" for topic in TOPICS]
    if draw.random() < 0.7:
        text = "\n".join(["0", str(len(lines)), *lines, ""])
        (directory / "recovery-point-offset-checkpoint").write_text(text)
    write_high_watermarks(directory, {(topic, 0): draw.choice([0, 4, 5000]) for topic in TOPICS})
    if draw.random() < 0.4:
        mark_clean_shutdown(directory)
    for name in draw.sample(sorted(batches), draw.randint(1, 2)):
        for _ in range(draw.choice([1, 1, 2])):
            if list((directory / name).glob("*.log")):
                draw.choice(HARMS)(draw, directory / name)
    return batches


# ---- commands


def append(directory: Path, topic: str) -> None:
    pylog.write_topic(directory, topic, [{"key": b"new", "value": b"v", "timestamp": NOW_MS}])


def write_job(directory: Path, topic: str) -> None:
    job = pylog.jobs.WriteJob(str(directory), "job", topic=topic)
    with job.stage("task") as stage:
        table = pylog.scan(directory, topics=["new"], columns=["key", "value"]).to_table()
        for batch in table.to_batches():
            stage.append(batch)
    job.commit([stage.staged])


def keep_all(directory: Path, topic: str) -> None:
    pylog.apply_retention(directory, config=KEEP, high_watermark="log-end")


def compact(directory: Path, topic: str) -> None:
    pylog.compact(directory, config=COMPACT, high_watermark="log-end")


def compact_by_job(directory: Path, topic: str) -> None:
    with pylog.jobs.CompactionJob(directory, config=COMPACT, high_watermark="log-end") as job:
        job.commit([task.run() for task in job.tasks])


def delete_records(directory: Path, topic: str) -> None:
    pylog.delete_records(directory, {(topic, 0): 0})


def truncate(directory: Path, topic: str) -> None:
    pylog.truncate_log(directory, (topic, 0), 1_000_000)


def create_topic(directory: Path, topic: str) -> None:
    pylog.create_topic(directory, "another", 1)


def open_and_close(directory: Path, topic: str) -> None:
    with LogManager([directory]):
        pass


COMMANDS: tuple[Callable[[Path, str], None], ...] = (
    append,
    write_job,
    keep_all,
    compact,
    compact_by_job,
    delete_records,
    truncate,
    create_topic,
    open_and_close,
)


REWRITING = (compact, compact_by_job)


def starting_after_their_ends(directory: Path) -> set[str]:
    path = directory / "log-start-offset-checkpoint"
    return (
        {f"{line.split()[0]}-0" for line in path.read_text().splitlines()[2:]}
        if path.exists()
        else set()
    )


def contents(partition: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(partition.glob("*.log"))]


def files(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(partition.iterdir())}


@pytest.mark.thorough(one_in=10)
@pytest.mark.parametrize("first", range(0, DIRECTORIES, 20))
def test_every_intact_batch_is_still_there_after_any_writing_command(
    first: int, tmp_path: Path, counted: Counted
) -> None:
    counts = Counter[str]()
    for seed in range(first, first + 20):
        draw = random.Random(seed)
        made = tmp_path / "made"
        batches = draw_directory(draw, made)
        pylog.write_topic(tmp_path / "new", "new", [{"key": b"k", "value": b"v"}])
        shutil.copytree(tmp_path / "new" / "new-0", made / "new-0")
        for command in draw.sample(COMMANDS, 4):
            directory = tmp_path / "copy"
            shutil.copytree(made, directory)
            there = {
                name: [each for each in of if any(each in log for log in contents(made / name))]
                for name, of in batches.items()
            }
            before = {name: files(made / name) for name in batches}
            topic = draw.choice(TOPICS)
            try:
                command(directory, topic)
            except RecoveryRefusedError:
                counts["refused"] += 1
                assert files(directory / f"{topic}-0") == before[f"{topic}-0"], seed
            except LogStorageError:
                counts["failed otherwise"] += 1
            else:
                counts["done"] += 1
            for name, expected in there.items():
                if command in REWRITING and expected and expected[0][16] < 2:
                    continue  # what is of an old format is written anew
                if command is keep_all and name in starting_after_their_ends(made):
                    continue  # retention removes what lies below the log start
                left = contents(directory / name)
                lost = [each for each in expected if not any(each in log for log in left)]
                assert not lost, f"seed {seed}: {command.__name__} cost {len(lost)} of {name}"
            shutil.rmtree(directory)
        shutil.rmtree(made)
        shutil.rmtree(tmp_path / "new")
    counted("commands in harmed directories", counts)
