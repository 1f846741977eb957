"""Archives of written jobs: their bytes, what damage to them is, and a million jobs in them."""

from __future__ import annotations

import hashlib
import random
import struct
from typing import TYPE_CHECKING

import crcmod.predefined
import pytest

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.job_archive import (
    MOST_ARCHIVED,
    JobArchive,
    WrittenJob,
    archive_jobs,
    archive_key,
    find_archived,
    fingerprint_digest,
)
from tests.support.recording_io import ForgetfulIO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NOW_MS = 1_700_000_000_000
crc32c = crcmod.predefined.mkCrcFun("crc-32c")
HEADER, ROW, RECORD = 20, 20, 56


def key_of(job_id: str, kind: str = "once") -> bytes:
    return hashlib.blake2b(f"{kind}\0{job_id}".encode(), digest_size=16).digest()


def written(job_id: str) -> WrittenJob:
    return WrittenJob(key_of(job_id), None, bytes(16), NOW_MS, 10)


def archived(directory: Path, jobs: Iterable[WrittenJob]) -> JobArchive:
    [archive] = archive_jobs(ForgetfulIO(), str(directory), (), jobs)
    return archive


def test_the_bytes_on_disk_are_those_of_the_format(tmp_path: Path) -> None:
    jobs = [written(f"job {each}") for each in range(300)]
    query = WrittenJob(
        archive_key("query", has_batches=True), 7, fingerprint_digest("f"), NOW_MS, 11
    )
    archive = archived(tmp_path, [*jobs, query])
    records = sorted(
        [
            *(
                key_of(f"job {each}") + bytes(24) + struct.pack(">qq", NOW_MS, 10)
                for each in range(300)
            ),
            key_of("query", "batches")
            + struct.pack(">q", 8)
            + hashlib.blake2b(b"f", digest_size=16).digest()
            + struct.pack(">qq", NOW_MS, 11),
        ]
    )
    first, second = b"".join(records[:256]), b"".join(records[256:])
    index = b"pylogjob" + struct.pack(">IQ", 1, 301)
    for block in (first, second):
        index += block[:16] + struct.pack(">I", crc32c(block))
    assert (tmp_path / archive.name).read_bytes() == index + first + second
    assert (archive.job_count, archive.checksum) == (301, crc32c(index))
    assert find_archived(str(tmp_path), [archive], query.key) == query
    for each in jobs:
        assert find_archived(str(tmp_path), [archive], each.key) == each


def test_of_several_batches_of_a_query_the_newest_is_found(tmp_path: Path) -> None:
    key = archive_key("query", has_batches=True)
    archives: list[JobArchive] = []
    for batch_id, others in ((2, 50), (9, 20), (5, 10)):
        jobs = [
            WrittenJob(key, batch_id, bytes(16), NOW_MS, batch_id),
            *(written(f"{batch_id} {each}") for each in range(others)),
        ]
        archives.append(archived(tmp_path, jobs))
        found = find_archived(str(tmp_path), archives, key)
        assert found is not None
        assert found.batch_id == (2 if batch_id == 2 else 9)
    [merged] = archive_jobs(
        ForgetfulIO(), str(tmp_path), archives, (written(f"x {each}") for each in range(60))
    )
    assert merged.job_count == 50 + 20 + 10 + 60 + 1
    found = find_archived(str(tmp_path), [merged], key)
    assert found is not None
    assert (found.batch_id, found.record_count) == (9, 9)


def test_a_record_is_copied_a_few_times_and_no_archive_is_larger_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.files.job_archive.MOST_ARCHIVED", 500)
    archives: tuple[JobArchive, ...] = ()
    copied = 0
    for number in range(200):
        before = {each.name for each in archives}
        jobs = [written(f"{number} {each}") for each in range(10)]
        archives = archive_jobs(ForgetfulIO(), str(tmp_path), archives, jobs)
        copied += sum(each.job_count for each in archives if each.name not in before)
        assert max(each.job_count for each in archives) <= 500
        assert sum(each.job_count for each in archives) == 10 * (number + 1)
    assert copied <= 2_000 * 6  # 10, 20, … 320
    assert len(archives) <= 2_000 // 320 + 6


def damaged(content: bytes, damage: str) -> bytes:
    """Return 300 records as something has changed them; ``forged`` has right checksums."""
    records = HEADER + 2 * ROW
    middle = records + 100 * RECORD
    if damage == "cut":
        return content[:-1]
    if damage == "empty":
        return b""
    if damage == "longer":
        return content + bytes(RECORD)
    positions = {
        "magic": 0,
        "version": 11,
        "count": 19,
        "a key of the index": HEADER,
        "a checksum of the index": HEADER + ROW - 1,
        "a key": middle,
        "a number": middle + 20,
        "a fingerprint": middle + 30,
    }
    at = positions[damage]
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        "cut",
        "empty",
        "longer",
        "magic",
        "version",
        "count",
        "a key of the index",
        "a checksum of the index",
        "a key",
        "a number",
        "a fingerprint",
    ],
)
def test_damage_is_an_error_for_whoever_depends_on_it_and_never_a_job_that_is_not_there(
    tmp_path: Path, damage: str
) -> None:
    jobs = sorted(written(f"job {each}") for each in range(300))
    archive = archived(tmp_path, jobs)
    path = tmp_path / archive.name
    path.write_bytes(damaged(path.read_bytes(), damage))
    for each in jobs[:256]:  # all of the first block
        with pytest.raises(
            CorruptCheckpointError, match="restore the file; if it is lost"
        ) as error:
            find_archived(str(tmp_path), [archive], each.key)
        assert str(error.value.path) == str(path)
    if damage in ("a key", "a number", "a fingerprint"):
        for each in jobs[256:]:  # the other block is as it was
            assert find_archived(str(tmp_path), [archive], each.key) == each
        return
    for each in jobs[256:]:
        with pytest.raises(CorruptCheckpointError):
            find_archived(str(tmp_path), [archive], each.key)


def forged(
    jobs: list[WrittenJob], count: int, magic: bytes = b"pylogjob", version: int = 1
) -> bytes:
    """Return an archive of one block with right checksums, whatever its jobs are."""
    block = b"".join(each.to_bytes() for each in jobs)
    index = magic + struct.pack(">IQ", version, count) + block[:16]
    return index + struct.pack(">I", crc32c(block)) + block


IN_ORDER = sorted(written(f"job {each}") for each in range(5))
FORGED = {
    "unsorted": forged([IN_ORDER[0], *IN_ORDER[:0:-1]], 5),
    "a key twice": forged([*IN_ORDER[:4], IN_ORDER[3]], 5),
    "another magic": forged(IN_ORDER, 5, magic=b"pylogjop"),
    "another version": forged(IN_ORDER, 5, version=2),
    "another count": forged(IN_ORDER, 6),
}


@pytest.mark.parametrize("content", FORGED.values(), ids=list(FORGED))
def test_what_has_right_checksums_and_is_no_archive_is_an_error(
    tmp_path: Path, content: bytes
) -> None:
    archive = JobArchive(f".pylog-ledger-{'a' * 32}", 5, crc32c(content[: HEADER + ROW]))
    (tmp_path / archive.name).write_bytes(forged(IN_ORDER, 5))
    right = JobArchive(archive.name, 5, crc32c(forged(IN_ORDER, 5)[: HEADER + ROW]))
    assert find_archived(str(tmp_path), [right], IN_ORDER[2].key) == IN_ORDER[2]
    (tmp_path / archive.name).write_bytes(content)
    for key in (*(each.key for each in IN_ORDER), b"\xff" * 16):
        with pytest.raises(CorruptCheckpointError):
            find_archived(str(tmp_path), [archive], key)


def test_an_archive_that_is_gone_is_an_error(tmp_path: Path) -> None:
    archive = archived(tmp_path, [written("job")])
    (tmp_path / archive.name).unlink()
    with pytest.raises(SegmentVanishedError):
        find_archived(str(tmp_path), [archive], key_of("job"))


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_an_archive_that_cannot_be_read_is_not_merged_and_not_forgotten(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken, intact = archived(tmp_path, [written("a")]), archived(tmp_path, [written("b")])
    path = tmp_path / broken.name
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[:-1])
    new, kept = archive_jobs(
        ForgetfulIO(), str(tmp_path), [broken, intact], map(written, ["c", "d"])
    )
    assert kept == broken
    assert new.job_count == 3
    assert broken.name in caplog.text


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("seed", [48])
def test_no_window_of_a_million_is_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    windows = [
        f"series-{series}-{hour:05}"
        for hour in range(5_600)
        for series in range(200)
        if chance.random() < 0.9
    ][:1_000_000]
    others = [f"{chance.getrandbits(128):032x}" for _ in range(100_000)]
    jobs = [*windows, *others]
    assert len(set(jobs)) == len(jobs) == 1_100_000
    archives: tuple[JobArchive, ...] = ()
    for first in range(0, len(jobs), 1_000):
        before = {each.name for each in archives}
        moved = map(written, jobs[first : first + 1_000])
        archives = archive_jobs(ForgetfulIO(), str(tmp_path), archives, moved)
        for name in before - {each.name for each in archives}:
            (tmp_path / name).unlink()
    assert sum(each.job_count for each in archives) == len(jobs)
    assert max(each.job_count for each in archives) <= MOST_ARCHIVED
    assert len(archives) <= 25
    size_bytes = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert size_bytes < 57 * len(jobs)
    keys = set()
    for each in archives:
        content = (tmp_path / each.name).read_bytes()
        records = content[len(content) - each.job_count * RECORD :]
        keys |= {records[at : at + 16] for at in range(0, len(records), RECORD)}
    assert keys == set(map(key_of, jobs))
    for job_id in chance.sample(jobs, 1_000):
        found = find_archived(str(tmp_path), archives, key_of(job_id))
        assert found == written(job_id), job_id
    for number in range(300):
        assert find_archived(str(tmp_path), archives, key_of(f"series-200-{number}")) is None
