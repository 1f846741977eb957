"""`pylog.dump` prints of random files what Kafka's own tool prints, of two versions."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    joined,
    marker,
    message,
    with_bad_crc,
    wrapper,
)
from tests.support.damage import with_bytes, with_size
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE
from tests.support.kafka_broker_tools import run_dump_log_segments
from tests.support.log_files import (
    offset_entries,
    offset_index_bytes,
    segment_path,
    time_entries,
    time_index_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import HowMany

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_is_here")]

SEEDS = range(20)
VERSIONS = {NEWEST_VERSION: "4.4", VERSION_BEFORE: "4.3", LAST_VERSION_3: "3.9"}
MODES = {
    "batches": [],
    "records": ["--deep-iteration"],
    "data": ["--print-data-log"],
    "only data": ["--print-data-log", "--skip-record-metadata"],
    "some bytes": ["--deep-iteration", "--max-bytes", "700"],
    "verified": ["--verify-index-only"],
}
ARGUMENTS: dict[str, dict[str, object]] = {
    "--deep-iteration": {"deep_iteration": True},
    "--print-data-log": {"print_data_log": True},
    "--skip-record-metadata": {"skip_record_metadata": True},
    "--max-bytes": {"max_bytes": 700},
    "--verify-index-only": {"verify_index_only": True},
    "--index-sanity-check": {"index_sanity_check": True},
}
# Whole and broken characters: what is too long, too large, cut short, and surrogates.
PIECES = [
    *(
        b"a",
        b"plain text, longer than a word",
        "gęś 你好 🙂".encode(),
        b"\n",
        b"\t\x00\x1b[1m",
        b'"\\',
    ),
    *(
        b"\xff",
        b"\xc0\x80",
        b"\xe2\x82",
        b"\xf0\x9f\x99",
        b"\xed\xa0\x80",
        b"\xed\xa0",
        b"\xf4\x90\x80\x80",
    ),
    *(b"\x80\x80", b"\xe0\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc2", b"\xef\xbf\xbd"),
]


def some_bytes(source: random.Random) -> bytes | None:
    if source.random() < 0.15:
        return None
    return b"".join(source.choices(PIECES, k=source.choice([0, 1, 1, 2, 5, 40])))


def some_records(source: random.Random, offset: int, *, magic: int) -> list[Stored]:
    records = []
    for _ in range(source.choice([1, 1, 2, 7, 60])):
        offset += source.choice([0, 0, 0, 1, 5])
        headers = tuple(
            ((some_bytes(source) or b"h").decode("utf-8", "replace"), some_bytes(source))
            for _ in range(source.choice([0, 0, 0, 1, 3]))
        )
        records.append(
            Stored(
                offset,
                source.choice([-1, 0, 5, 1_700_000_000_000 + source.randrange(10**6)])
                if magic
                else -1,
                some_bytes(source),
                some_bytes(source),
                headers if magic == 2 else (),
            )
        )
        offset += 1
    return records


def some_batch(source: random.Random, offset: int) -> Built:
    magic = source.choice([0, 1, 2, 2, 2, 2])
    codec = source.choice(["none", "none", "gzip", "snappy", "lz4"] + ["zstd"] * (magic == 2))
    append_time = source.choice([None, None, 1_650_000_000_000]) if magic else None
    if magic < 2:
        records = some_records(source, offset, magic=magic)
        if codec == "none":
            built = message(records[0], magic=magic, append_time=append_time)
        else:
            built = wrapper(records, magic=magic, codec=codec, append_time=append_time)
        return with_bad_crc(built) if codec == "none" and source.random() < 0.1 else built
    kind = source.random()
    if kind < 0.1:
        return marker(offset, source.choice([ABORT, COMMIT]), coordinator_epoch=source.randrange(9))
    if kind < 0.15:
        return empty_batch_v2(offset, offset + 3)
    records = some_records(source, offset, magic=2)
    has_producer = source.random() < 0.4
    built = batch_v2(
        records,
        codec=codec,
        append_time=append_time,
        leader_epoch=source.choice([-1, 0, 7]),
        producer_id=source.randrange(10**6) if has_producer else -1,
        producer_epoch=3 if has_producer else -1,
        base_sequence=source.choice([0, 2**31 - 3]) if has_producer else -1,
        is_transactional=has_producer and source.random() < 0.5,
        delete_horizon=source.choice([None, None, 1_600_000_000_000]),
    )
    return with_bad_crc(built) if source.random() < 0.1 else built


def some_segment(directory: Path, seed: int) -> Path:
    """Write a segment with its indexes, some of whose entries are wrong."""
    source = random.Random(seed)
    base = offset = source.choice([0, 0, 1, 123456789012])
    batches: list[Built] = []
    for _ in range(source.choice([0, 1, 3, 25])):
        offset += source.choice([0, 0, 0, 4])
        batches.append(some_batch(source, offset))
        offset = batches[-1].last_offset + 1
    log = segment_path(directory, base)
    tail = source.choice([b"", b"", bytes(17), b"\x00" * 7 + b"\x01", joined(batches)[:40]])
    if len(tail) == 40:  # the beginning of a batch that is longer than what is left
        tail = (2**40).to_bytes(8, "big") + (5000).to_bytes(4, "big") + tail[12:]
    log.write_bytes(joined(batches) + tail)
    entries = offset_entries(batches, every=source.choice([1, 2]))
    if entries and source.random() < 0.3:
        place = source.randrange(len(entries))
        entries[place] = (entries[place][0] + 1, entries[place][1])
    zeros = bytes(source.choice([0, 0, 80]))
    segment_path(directory, base, ".index").write_bytes(offset_index_bytes(entries, base) + zeros)
    stamps = time_entries(batches, every=2)
    if stamps and source.random() < 0.4:
        place = source.randrange(len(stamps))
        stamp, at = stamps[place]
        stamps[place] = source.choice([(stamp + 1, at), (stamp, at + 1), (0, at)])
    stamp_bytes = time_index_bytes(stamps, base) + bytes(source.choice([0, 0, 120]))
    segment_path(directory, base, ".timeindex").write_bytes(stamp_bytes)
    return log


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("dumped")
    found = []
    for seed in SEEDS:
        directory = root / f"random-{seed}"
        directory.mkdir()
        log = some_segment(directory, seed)
        found += [log, log.with_suffix(".index"), log.with_suffix(".timeindex")]
    unknown = root / "notes.txt"
    unknown.write_text("")
    return [*found, unknown]


def ours(paths: list[Path], flags: list[str], version: str) -> tuple[list[str], list[str]]:
    arguments: dict[str, object] = {}
    for flag in flags:
        arguments |= ARGUMENTS.get(flag, {})
    dumped = pylog.dump(*paths, kafka_version=version, **arguments)  # type: ignore[arg-type]
    text = b"".join(bytes(lines) for lines in dumped).decode()
    errors = [reason for report in dumped.reports for reason in report.errors]
    return text.split("\n"), sorted([*errors, *dumped.texts()])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_random_files_are_dumped_as_kafkas_tool_dumps_them(
    files: list[Path], version: str, mode: str
) -> None:
    flags = MODES[mode]
    text, complaints = run_dump_log_segments(files, *flags, version=version)
    printed, found = ours(files, flags, VERSIONS[version])
    assert printed == text.split("\n")
    reported = [line for line in complaints.split("\n") if line and not is_logging(line)]
    assert found == sorted(reported)


def is_logging(line: str) -> bool:
    return "SLF4J" in line or "log4j" in line.lower() or " WARN " in line


def damaged_logs(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield files that hold no sound log, and what is wrong with each."""
    sound = batch_v2([Stored(0, 5, b"k", b"v")])
    second = batch_v2([Stored(1, 6, b"k", b"v")]).data
    third, last = batch_v2([Stored(1, 6, b"k", b"v")]), batch_v2([Stored(2, 7, b"k", b"v")])
    old = message(Stored(1, 6, b"k", b"v"), magic=1)
    short = message(Stored(1, 6, b"", b""), magic=1)
    for name, tail in {
        "zeros": bytes(100),
        "a negative size": (1).to_bytes(8, "big") + b"\xff" * 30,
        "a codec that is none": second[:22] + b"\x07" + second[23:],
        "more records than there are": second[:57] + (9).to_bytes(4, "big") + second[61:],
        "a magic that is none": second[:16] + b"\x05" + second[17:],
        "a negative magic": with_bytes(old, 16, b"\x80").data,
        "a later magic, torn": with_bytes(third, 16, b"\x05").data[:-3],
        "a negative magic, torn": with_bytes(old, 16, b"\xfd").data[:-3],
        **{
            f"a batch of {size} bytes before another one": with_size(third, size).data[:size]
            + last.data
            for size in (26, 27, 42, 60)
        },
        **{
            f"a message of {size} bytes before another one": with_size(short, size).data[:size]
            + last.data
            for size in (26, 30, 33)
        },
        "a short message at the end": with_size(short, 26).data[:26],
        "a short batch at the end": with_size(third, 32).data[:32],
    }.items():
        path = segment_path(directory, len(list(directory.glob("*.log"))))
        path.write_bytes(sound.data + tail)
        yield name, path


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_damaged_files_are_dumped_up_to_where_the_tool_ends(
    tmp_path: Path, version: str, how_many: HowMany
) -> None:
    for name, path in damaged_logs(tmp_path):
        for flags in (["--print-data-log"], [])[: how_many(1, 2)]:
            text, is_ended = kafkas(path, flags, version)
            printed, found = ours([path], flags, VERSIONS[version])
            lines = text.split("\n")
            # The tool prints the beginning of the line at whose end it fails.
            whole = lines if not is_ended else lines[:-1]
            assert printed[: len(whole)] == whole, (name, flags)
            assert bool([each for each in found if " at byte " in each]) == is_ended, (name, flags)


def kafkas(path: Path, flags: list[str], version: str) -> tuple[str, bool]:
    """Return what the tool prints, and whether it ended with an exception."""
    try:
        return run_dump_log_segments([path], *flags, version=version)[0], False
    except subprocess.CalledProcessError as error:
        return error.stdout.decode(errors="replace"), True
