"""The ledger of written jobs: it forgets none, reads older ones, refuses what it cannot know."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError, LogDirectoryError
from pylog.files import ledger as ledger_file
from pylog.files.bookmark_file import read_bookmark
from pylog.files.checkpoint_file import MAX_TEXT_FILE_BYTES
from pylog.files.file_names import LEDGER
from pylog.files.ledger import Ledger, LedgerEntry, ask_ledger, enter_in_ledger, read_ledger
from pylog.files.staged_files import JobKey
from tests.kills.stopped_at import Stopped, StoppedAt
from tests.support.recording_io import ForgetfulIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW_MS = 1_700_000_000_000
LONG = "long bookmark " * 100
VERSION_1 = """\
{"version": 1, "jobs": [
{"job_id": "orders-2026-08-01T00", "batch_id": null, "fingerprint": null, \
"commit_id": "5d91d75f66f04d1a909d028232979152", "time_ms": 1795895693042, "record_count": 1},
{"job_id": "nightly", "batch_id": null, "fingerprint": "paris", \
"commit_id": "85cbbd2bc366480996e77136db9a7906", "time_ms": 1795895693589, "record_count": 1},
{"job_id": "0b6f-query", "batch_id": 1, "fingerprint": null, \
"commit_id": "475ff0b0fa974c5e922ab58abb5ea239", "time_ms": 1795895693847, "record_count": 1},
{"job_id": "0b6f-query", "batch_id": 2, "fingerprint": null, \
"commit_id": "87da84db1d174f2089a900d1a64cd159", "time_ms": 1795895693979, "record_count": 1},
{"job_id": "hourly", "batch_id": 1, "fingerprint": "f", \
"commit_id": "2ea56bc2c8794a738bb96f12ca04d3bd", "time_ms": 1795895694246, "record_count": 1, \
"bookmark": "BOOKMARK"}
]}
"""


def entry(job_id: str, batch_id: int | None = None) -> LedgerEntry:
    return LedgerEntry(JobKey(job_id, batch_id), f"{job_id}-{batch_id}", NOW_MS, 10)


def enter(directory: Path, *entries: LedgerEntry) -> None:
    for each in entries:
        enter_in_ledger(ForgetfulIO(), str(directory), each)


def has(directory: Path, job_id: str, batch_id: int | None = None) -> bool:
    key = JobKey(job_id, batch_id)
    return ask_ledger(str(directory), lambda ledger: key in ledger)


def newest(directory: Path, job_id: str) -> tuple[int | None, str | None] | None:
    """Return number and bookmark of the newest batch."""

    def find(ledger: Ledger) -> tuple[int | None, str | None] | None:
        found = ledger.newest(job_id)
        if found is None:
            return None
        return found.key.batch_id, read_bookmark(str(directory), found.bookmark)

    return ask_ledger(str(directory), find)


def names(directory: Path, kind: str) -> list[str]:
    return sorted(path.name for path in directory.glob(f".pylog-{kind}-*"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let entries move to archives after a few jobs, and archives be merged after a few of them."""
    monkeypatch.setattr("pylog.files.ledger.MOST_RECENT", 4)
    monkeypatch.setattr("pylog.files.ledger.KEPT_RECENT", 1)
    monkeypatch.setattr("pylog.files.job_archive.MOST_ARCHIVED", 40)
    monkeypatch.setattr("pylog.files.job_archive._BLOCK_RECORDS", 3)
    monkeypatch.setattr("pylog.files.job_archive._BLOCK_BYTES", 3 * 56)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert not has(tmp_path, "nightly")
    marked = replace(entry("hourly", 3), fingerprint="f", bookmark="up to 3")
    enter(tmp_path, entry("nightly"), entry("query", 7), marked)
    assert read_ledger(str(tmp_path)).entries == (entry("nightly"), entry("query", 7), marked)
    assert has(tmp_path, "nightly")
    assert has(tmp_path, "query", 7)
    assert not has(tmp_path, "query", 8)
    assert not has(tmp_path, "query")
    assert not has(tmp_path, "nightly", 0)
    assert json.loads((tmp_path / ".pylog-ledger").read_text()) == {
        "version": 2,
        "archives": [],
        "jobs": [
            {
                "job_id": job_id,
                "batch_id": batch_id,
                "fingerprint": fingerprint,
                "commit_id": f"{job_id}-{batch_id}",
                "time_ms": NOW_MS,
                "record_count": 10,
                **bookmark,
            }
            for job_id, batch_id, fingerprint, bookmark in (
                ("nightly", None, None, {}),
                ("query", 7, None, {}),
                ("hourly", 3, "f", {"bookmark": "up to 3"}),
            )
        ],
    }


@pytest.mark.parametrize("later_jobs", [0, 20], ids=["in the ledger", "in an archive"])
@pytest.mark.usefixtures("small")
def test_a_job_of_another_source_is_not_one_that_has_been_written(
    tmp_path: Path, later_jobs: int
) -> None:
    enter(tmp_path, replace(entry("nightly"), fingerprint="paris"), entry("older"))
    enter(tmp_path, *(entry(f"later {each}") for each in range(later_jobs)))
    ledger = read_ledger(str(tmp_path))
    assert len(ledger.archives) == min(later_jobs, 2)
    assert ledger.has_job(JobKey("nightly"), "paris")
    assert ledger.has_job(JobKey("nightly"), None)  # of whoever says nothing about it
    assert ledger.has_job(JobKey("older"), "paris")
    assert not ledger.has_job(JobKey("new"), "paris")
    with pytest.raises(ValueError, match="'nightly' has been committed before, with 10 records fr"):
        ledger.has_job(JobKey("nightly"), "rome")


@pytest.mark.usefixtures("small")
def test_the_newest_batch_of_a_query_is_known_for_good_and_older_ones_count_as_written(
    tmp_path: Path,
) -> None:
    enter(tmp_path, *(entry("query", each) for each in (0, 1, 2)))
    enter(tmp_path, *(entry(f"job {each}") for each in range(30)))
    for _ in range(2):
        assert [has(tmp_path, "query", each) for each in range(4)] == [True, True, True, False]
        assert newest(tmp_path, "query") == (2, None)
        enter(tmp_path, *(entry(f"job {each}") for each in range(30, 40)))
    enter(tmp_path, entry("query", 3), *(entry(f"job {each}") for each in range(40, 50)))
    assert [has(tmp_path, "query", each) for each in (2, 3, 4)] == [True, True, False]
    assert newest(tmp_path, "job 3") is None  # it has no batches


@pytest.mark.usefixtures("small")
def test_an_archived_query_has_its_fingerprint_or_a_digest_of_another_one(tmp_path: Path) -> None:
    enter(tmp_path, replace(entry("query", 3), fingerprint="paris"), entry("other", 0))
    enter(tmp_path, *(entry(f"job {each}") for each in range(9)))
    ledger = read_ledger(str(tmp_path))
    of_paris, of_rome = (ledger.newest("query", each) for each in ("paris", "rome"))
    assert of_paris is not None
    assert of_rome is not None
    assert (of_paris.time_ms, of_paris.record_count) == (NOW_MS, 10)
    assert of_paris.fingerprint == "paris"
    assert re.fullmatch("[0-9a-f]{32}", str(of_rome.fingerprint))
    of_nobody = ledger.newest("other", "paris")
    assert of_nobody is not None
    assert of_nobody.fingerprint is None


@pytest.mark.usefixtures("small")
def test_of_a_job_only_the_newest_bookmark_is_kept_and_that_for_good(tmp_path: Path) -> None:
    for number in range(3):
        enter(tmp_path, replace(entry("hourly", number), bookmark=f"{LONG}{number}"))
        assert len(names(tmp_path, "bookmark")) == 1
    enter(tmp_path, *(entry(f"job {each}") for each in range(30)))
    assert newest(tmp_path, "hourly") == (2, f"{LONG}2")
    assert "long bookmark" not in (tmp_path / LEDGER).read_text()
    enter(tmp_path, replace(entry("hourly", 3), bookmark="short"))
    assert newest(tmp_path, "hourly") == (3, "short")
    assert names(tmp_path, "bookmark") == []


def test_a_commit_that_replaces_a_bookmark_does_not_disturb_who_reads_it(tmp_path: Path) -> None:
    enter(tmp_path, replace(entry("hourly", 0), bookmark=f"{LONG}0"))
    looks = []

    def read(ledger: Ledger) -> str | None:
        found = ledger.newest("hourly")
        assert found is not None
        looks.append(found.key.batch_id)
        if len(looks) < 3:
            number = len(looks)
            enter(tmp_path, replace(entry("hourly", number), bookmark=f"{LONG}{number}"))
        return read_bookmark(str(tmp_path), found.bookmark)

    assert ask_ledger(str(tmp_path), read) == f"{LONG}2"
    assert looks == [0, 1, 2]


@pytest.mark.usefixtures("small")
def test_a_commit_that_merges_archives_does_not_disturb_who_looks_up_a_job(tmp_path: Path) -> None:
    enter(tmp_path, *(entry(f"job {each}") for each in range(5)))
    looks = []

    def look(ledger: Ledger) -> bool:
        looks.append(names(tmp_path, "ledger"))
        if len(looks) == 1:
            enter(tmp_path, *(entry(f"job {each}") for each in range(5, 9)))
        return JobKey("job 0") in ledger

    assert ask_ledger(str(tmp_path), look)
    assert len(looks) == 2
    assert not {*looks[0]} & {*looks[1]}


def test_one_who_never_finds_what_the_ledger_names_gives_up(tmp_path: Path) -> None:
    enter(tmp_path, replace(entry("hourly", 0), bookmark=LONG))

    def look(ledger: Ledger) -> str | None:
        [found] = ledger.entries
        enter(tmp_path, replace(found, bookmark=LONG + LONG))
        [again] = read_ledger(str(tmp_path)).entries
        assert again.bookmark != found.bookmark
        return read_bookmark(str(tmp_path), found.bookmark)

    with pytest.raises(LogDirectoryError, match="commits come and go faster"):
        ask_ledger(str(tmp_path), look)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("kind", "way_out"), [("ledger", "take its name out of"), ("bookmark", "start over")]
)
def test_a_file_that_is_gone_is_an_error_that_says_what_to_do(
    tmp_path: Path, kind: str, way_out: str
) -> None:
    enter(tmp_path, replace(entry("hourly", 0), bookmark=LONG))
    enter(tmp_path, *(entry(f"job {each}") for each in range(5)))
    [name] = names(tmp_path, kind)
    (tmp_path / name).unlink()
    looks: dict[str, Callable[[], object]] = {
        "ledger": lambda: has(tmp_path, "new"),
        "bookmark": lambda: newest(tmp_path, "hourly"),
    }
    with pytest.raises(CorruptCheckpointError, match=f"{name}: file is gone .*{way_out}"):
        looks[kind]()
    # What is entered is written: it has to come in, whatever else is missing.
    enter(tmp_path, *(entry(f"later {each}") for each in range(9)))
    with pytest.raises(CorruptCheckpointError, match=f"{name}: file is gone .*{way_out}"):
        looks[kind]()


@pytest.mark.usefixtures("small")
def test_an_archive_that_is_lost_is_given_up_by_taking_its_name_out(tmp_path: Path) -> None:
    enter(tmp_path, *(entry(f"job {each}") for each in range(5)))
    [name] = names(tmp_path, "ledger")
    (tmp_path / name).unlink()
    content = json.loads((tmp_path / LEDGER).read_text())
    content["archives"] = [each for each in content["archives"] if each["name"] != name]
    (tmp_path / LEDGER).write_text(json.dumps(content))
    assert not has(tmp_path, "job 0")
    assert has(tmp_path, "job 4")


@pytest.mark.parametrize("bookmark", ["up to 1", LONG])
def test_a_ledger_of_version_1_is_read_and_replaced_by_the_next_commit(
    tmp_path: Path, bookmark: str
) -> None:
    (tmp_path / LEDGER).write_text(VERSION_1.replace("BOOKMARK", bookmark))
    for _ in range(2):
        assert has(tmp_path, "orders-2026-08-01T00")
        assert [has(tmp_path, "0b6f-query", each) for each in range(4)] == [True] * 3 + [False]
        assert newest(tmp_path, "hourly") == (1, bookmark)
        with pytest.raises(ValueError, match="'nightly' has been committed before"):
            read_ledger(str(tmp_path)).has_job(JobKey("nightly"), "rome")
        enter(tmp_path, entry("new"))
    assert json.loads((tmp_path / LEDGER).read_text())["version"] == 2
    assert len(names(tmp_path, "bookmark")) == (bookmark == LONG)


def test_a_ledger_of_version_1_with_more_jobs_than_stay_is_archived_at_once(
    tmp_path: Path,
) -> None:
    of_it = json.loads(VERSION_1)["jobs"]
    many = [{**of_it[0], "job_id": f"job {each}"} for each in range(10_000)]
    (tmp_path / LEDGER).write_text(json.dumps({"version": 1, "jobs": [*of_it, *many]}))
    enter(tmp_path, entry("new"))
    ledger = read_ledger(str(tmp_path))
    assert sum(each.job_count for each in ledger.archives) + len(ledger.entries) == 10_005
    assert (tmp_path / LEDGER).stat().st_size < 100_000
    assert all(has(tmp_path, f"job {each}") for each in range(0, 10_000, 111))
    assert newest(tmp_path, "hourly") == (1, "BOOKMARK")


def test_a_ledger_without_fingerprints_is_read(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_text(
        '{"version": 1, "jobs": [{"job_id": "a", "batch_id": null, "commit_id": "x",'
        ' "time_ms": 1, "record_count": 1}]}'
    )
    assert read_ledger(str(tmp_path)).entries == (LedgerEntry(JobKey("a"), "x", 1, 1),)


def test_a_ledger_that_would_be_too_large_to_be_read_is_refused_before_a_commit(
    tmp_path: Path,
) -> None:
    Ledger(str(tmp_path), size_bytes=MAX_TEXT_FILE_BYTES - 65_536).ensure_room()
    with pytest.raises(ValueError, match="write jobs with new ids to another log directory"):
        Ledger(str(tmp_path), size_bytes=MAX_TEXT_FILE_BYTES - 65_535).ensure_room()


ENTRY = (
    '{"job_id": "a", "batch_id": 1, "commit_id": "x", "time_ms": 1, "record_count": 1,'
    ' "bookmark": %s}'
)
ARCHIVE = '{"version": 2, "archives": [%s], "jobs": []}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"version": 0, "jobs": []}',
        '{"version": 3, "archives": [], "jobs": []}',
        '{"version": 1, "archives": [], "jobs": []}',
        '{"version": 2, "jobs": []}',
        '{"version": 1, "jobs": {}}',
        '{"version": 1, "jobs": [{}]}',
        '{"version": 1, "jobs": [%s]}' % (ENTRY % "3"),
        '{"version": 2, "archives": [], "jobs": [%s]}' % (ENTRY % "{}"),
        '{"version": 2, "archives": [], "jobs": [%s]}'
        % (ENTRY % '{"name": "../x", "size_bytes": 1, "checksum": 1}'),
        '{"version": 2, "archives": [], "jobs": [%s]}'
        % (ENTRY % f'{{"name": ".pylog-bookmark-{"a" * 32}", "size_bytes": -1, "checksum": 1}}'),
        ARCHIVE % "{}",
        ARCHIVE % '{"name": "../x", "job_count": 1, "checksum": 1}',
        ARCHIVE % f'{{"name": ".pylog-ledger-{"a" * 32}", "job_count": 0, "checksum": 1}}',
        ARCHIVE % f'{{"name": ".pylog-ledger-{"a" * 32}", "job_count": 1, "checksum": -1}}',
        (
            '{"version": 1, "jobs": [{"job_id": 1, "batch_id": null, "commit_id": "x",'
            ' "time_ms": 1, "record_count": 1}]}'
        ),
        (
            '{"version": 1, "jobs": [{"job_id": "a", "batch_id": null, "commit_id": null,'
            ' "time_ms": 1, "record_count": 1}]}'
        ),
        (
            '{"version": 1, "jobs": [{"job_id": "a", "batch_id": -1, "commit_id": "x",'
            ' "time_ms": 1, "record_count": 1}]}'
        ),
    ],
)
def test_what_is_no_ledger_is_an_error_that_says_what_is_at_stake(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / LEDGER).write_text(text)
    with pytest.raises(CorruptCheckpointError, match="would be written twice"):
        read_ledger(str(tmp_path))


@dataclass
class Model:
    """What was written, as one who forgets nothing knows it."""

    once: dict[str, str | None] = field(default_factory=dict)
    newest: dict[str, tuple[int, str | None]] = field(default_factory=dict)

    def draw(self, chance: random.Random) -> LedgerEntry:
        """Return a job that was not written."""
        kind = chance.choice(["once", "once", "stream", "hourly"])
        if kind == "once":
            job_id = f"window {chance.randrange(10**9)}"
            fingerprint = chance.choice([None, "paris", "rome"])
            return replace(entry(job_id), fingerprint=fingerprint)
        job_id = f"{kind} {chance.randrange(6)}"
        number = self.newest.get(job_id, (-1, None))[0] + chance.randint(1, 3)
        if kind == "stream":
            return entry(job_id, number)
        mark = f"{chance.choice(['', LONG])}{number}"
        return replace(entry(job_id, number), bookmark=mark)

    def add(self, written: LedgerEntry) -> None:
        """Note what was written."""
        job_id, batch_id = written.key
        if batch_id is None:
            self.once[job_id] = written.fingerprint
        else:
            mark = written.bookmark
            self.newest[job_id] = batch_id, None if mark is None else str(mark)

    def check(self, directory: Path, chance: random.Random) -> None:
        """Hold a ledger against this."""
        for job_id, fingerprint in self.once.items():
            assert has(directory, job_id), job_id
            assert not has(directory, job_id, 0), job_id
            if fingerprint is not None and chance.random() < 0.1:
                with pytest.raises(ValueError, match="from another source"):
                    read_ledger(str(directory)).has_job(JobKey(job_id), "berlin")
        for job_id, (number, mark) in self.newest.items():
            assert newest(directory, job_id) == (number, mark)
            assert has(directory, job_id, chance.randint(0, number))
            assert not has(directory, job_id, number + 1)
            assert not has(directory, job_id)
        for _ in range(3):
            assert not has(directory, f"window {-chance.randrange(10**9)}")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("small")
def test_a_ledger_knows_what_one_who_forgets_nothing_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, model, stop = random.Random(seed), Model(), StoppedAt(monkeypatch)
    for step in range(120):
        drawn = model.draw(chance)
        is_known = None
        if chance.random() < 0.3:
            stop.arm(chance.randint(1, 25))
            try:
                enter(tmp_path, drawn)
            except Stopped:
                is_known = has(tmp_path, *drawn.key)
            stop.arm(None)
        else:
            enter(tmp_path, drawn)
        if is_known is not False:
            model.add(drawn)
        if step % 20 == 0 or is_known is not None:
            model.check(tmp_path, chance)
    enter(tmp_path, entry("last"))
    model.check(tmp_path, chance)
    files = {*names(tmp_path, "ledger"), *names(tmp_path, "bookmark")}
    assert files == read_ledger(str(tmp_path)).file_names
    assert len(model.once) > 30
    assert len(names(tmp_path, "ledger")) <= 1 + len(model.once) // 20 + 5


def test_old_entries_move_to_an_archive_many_at_a_time(tmp_path: Path) -> None:
    most, kept = ledger_file.MOST_RECENT, ledger_file.KEPT_RECENT
    first = json.loads(VERSION_1)["jobs"][0]
    jobs = [{**first, "job_id": f"job {each}"} for each in range(most - 1)]
    (tmp_path / LEDGER).write_text(json.dumps({"version": 1, "jobs": jobs}))
    enter(tmp_path, entry("as many as stay"))
    assert names(tmp_path, "ledger") == []
    enter(tmp_path, entry("one more"))
    [archive] = read_ledger(str(tmp_path)).archives
    assert archive.job_count == most + 1 - kept
    assert len(read_ledger(str(tmp_path)).entries) == kept
