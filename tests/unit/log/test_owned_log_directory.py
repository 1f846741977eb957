"""Links and special files among owned logs: removed as what they are, and never written through."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import LogConfig
from pylog.errors import UnexpectedFileError, UnreadableFileError
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import Stored, batch_v2
from tests.support.faults.odd_files import put
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW_MS = 1_700_000_000_000
DELETE_DELAY_MS = 1000
ORDERS, EVENTS = TopicPartition("orders", 0), TopicPartition("events", 0)
DELETED_LOG = f"orders-0.{'a' * 32}-delete"
BATCHES = [batch_v2([Stored(offset, NOW_MS, None, b"value")]) for offset in range(3)]
ONE_RECORD = batch_v2([Stored(0, NOW_MS, None, b"value")]).data
MARKER = ".kafka_cleanshutdown"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
)
TOPIC_CONFIGS = "pylog-topic-configs.json"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    directory.mkdir()
    return directory


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Make a folder that is nobody's log, with a folder in it."""
    folder = tmp_path / "foreign"
    (folder / "folder").mkdir(parents=True)
    (folder / "photo.jpg").write_bytes(b"dear to somebody")
    (folder / "folder" / "letter").write_bytes(b"dear, too")
    return folder


class Opened:
    """A manager on a clock that is set by hand."""

    def __init__(self, directory: Path) -> None:
        clock = ManualClock(NOW_MS)
        self._clock, self._scheduler = clock, ManualScheduler(clock)
        context = LogContext(clock=clock, scheduler=self._scheduler)
        config = LogConfig(file_delete_delay_ms=DELETE_DELAY_MS)
        self.manager = LogManager([directory], config, context=context)

    def remove_what_is_due(self) -> None:
        self._clock.sleep(DELETE_DELAY_MS)
        self._scheduler.tick()


def content(directory: Path) -> dict[str, object]:
    """Return everything in a directory: bytes of files, targets of links."""
    found: dict[str, object] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = None
    return found


# ---- deletion


def test_a_link_named_like_a_deleted_log_is_removed_and_what_it_leads_to_stays(
    logs: Path, foreign: Path
) -> None:
    before = content(foreign)
    (logs / DELETED_LOG).symlink_to(foreign)
    opened = Opened(logs)
    with opened.manager:
        opened.remove_what_is_due()
        assert not os.path.lexists(logs / DELETED_LOG)
    assert content(foreign) == before


def test_a_link_that_took_the_place_of_an_open_log_is_deleted_and_not_what_it_leads_to(
    logs: Path, tmp_path: Path
) -> None:
    opened = Opened(logs)
    with opened.manager as manager:
        manager.get_or_create_log(ORDERS).append_as_leader(ONE_RECORD)
        (logs / "orders-0").rename(tmp_path / "moved")
        (logs / "orders-0").symlink_to(tmp_path / "moved")
        before = content(tmp_path / "moved")
        manager.delete_log(ORDERS)
        opened.remove_what_is_due()
        assert [path.name for path in logs.iterdir() if path.is_symlink()] == []
    assert content(tmp_path / "moved") == before


def test_links_in_a_deleted_log_are_removed_and_not_followed(logs: Path, foreign: Path) -> None:
    before = content(foreign)
    deleted = logs / DELETED_LOG
    deleted.mkdir()
    (deleted / f"{0:020d}.log").symlink_to(foreign / "photo.jpg")
    (deleted / f"{0:020d}.index").symlink_to(foreign)
    (deleted / "dangling").symlink_to(foreign / "nothing")
    opened = Opened(logs)
    with opened.manager:
        opened.remove_what_is_due()
        assert not deleted.exists()
    assert content(foreign) == before


@pytest.mark.parametrize("target", ["photo.jpg", "folder", "nothing"])
@pytest.mark.parametrize(
    "name", ["{0}.log.deleted", "{0}.index.deleted", "{0}.snapshot.deleted", "{0}.log.cleaned"]
)
def test_leftovers_that_are_links_are_removed_and_not_followed(
    logs: Path, foreign: Path, name: str, target: str
) -> None:
    before = content(foreign)
    partition = write_partition(logs, {0: BATCHES})
    link = partition / name.format(f"{7:020d}")
    link.symlink_to(foreign / target)
    with Opened(logs).manager as manager:
        assert not os.path.lexists(link)
        assert manager.get_log(ORDERS).log_end_offset == 3
    assert content(foreign) == before


# ---- what is refused


def check_start_is_refused(logs: Path, *, because: str) -> None:
    """Check that a start fails, with the reason, and leaves everything as it was."""
    before = content(logs)
    with pytest.raises(UnexpectedFileError) as caught:
        Opened(logs).manager.startup()
    assert because in str(caught.value)
    assert content(logs) == before


@pytest.mark.parametrize("has_target", [True, False])
def test_a_partition_directory_that_is_a_link_is_refused_before_anything_is_changed(
    logs: Path, tmp_path: Path, *, has_target: bool
) -> None:
    with Opened(logs).manager as manager:
        manager.get_or_create_log(EVENTS).append_as_leader(ONE_RECORD)
    elsewhere = tmp_path / "elsewhere" / "orders-0"
    if has_target:
        write_partition(elsewhere.parent, {0: BATCHES})
    before = content(tmp_path / "elsewhere")
    (logs / "orders-0").symlink_to(elsewhere)
    check_start_is_refused(logs, because=f"symbolic link to '{elsewhere}'")
    check_start_is_refused(logs, because=f"{logs}/orders-0: partition directory is a symbolic link")
    assert (logs / MARKER).exists()
    assert content(tmp_path / "elsewhere") == before
    (logs / "orders-0").unlink()
    with Opened(logs).manager as manager:
        assert manager.get_log(EVENTS).log_end_offset == 1


def test_a_reader_follows_a_partition_directory_that_is_a_link(logs: Path, tmp_path: Path) -> None:
    write_partition(tmp_path / "elsewhere", {0: BATCHES})
    (logs / "orders-0").symlink_to(tmp_path / "elsewhere" / "orders-0")
    assert pylog.scan(logs, columns=["offset"]).to_table().column(0).to_pylist() == [0, 1, 2]


def test_a_log_is_not_made_through_a_link_and_the_directory_stays_online(
    logs: Path, foreign: Path
) -> None:
    before = content(foreign)
    with Opened(logs).manager as manager:
        (logs / "orders-0").symlink_to(foreign)
        with pytest.raises(UnexpectedFileError, match="symbolic link to"):
            manager.get_or_create_log(ORDERS)
        assert manager.get_or_create_log(EVENTS).append_as_leader(ONE_RECORD).last_offset == 0
        (logs / "orders-0").unlink()
    assert content(foreign) == before


def as_link(path: Path, foreign: Path) -> None:
    path.symlink_to(foreign / "photo.jpg")


def as_dangling_link(path: Path, foreign: Path) -> None:
    path.symlink_to(foreign / "nothing")


def as_pipe(path: Path, _foreign: Path) -> None:
    os.mkfifo(path)


def as_directory(path: Path, _foreign: Path) -> None:
    path.mkdir()


def as_socket(path: Path, _foreign: Path) -> None:
    put(path, "socket")


def as_circular_link(path: Path, _foreign: Path) -> None:
    path.symlink_to(path)


def as_link_to_a_device(path: Path, _foreign: Path) -> None:
    path.symlink_to("/dev/zero")


def as_device(path: Path, _foreign: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can make a device")
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # as /dev/zero


def as_file(path: Path, _foreign: Path) -> None:
    path.write_bytes(b"")


LINKS = [as_link, as_dangling_link, as_circular_link, as_link_to_a_device]
SPECIAL = [as_pipe, as_socket, as_device]


@pytest.mark.parametrize("kind", [*LINKS, *SPECIAL, as_directory])
@pytest.mark.parametrize(
    "name",
    [
        f"{0:020d}.log",
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
        f"{0:020d}.txnindex",
        f"{3:020d}.snapshot",
        f"{0:020d}.log.swap",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ],
)
def test_a_file_of_a_log_that_is_not_a_regular_file_is_refused_before_anything_is_changed(
    logs: Path, foreign: Path, name: str, kind: Callable[[Path, Path], None]
) -> None:
    before = content(foreign)
    partition = write_partition(logs, {0: BATCHES})
    (logs / MARKER).write_bytes(b"")
    (partition / name).unlink(missing_ok=True)
    kind(partition / name, foreign)
    check_start_is_refused(logs, because="expected a regular file, found a")
    assert content(foreign) == before


@pytest.mark.parametrize("kind", [*LINKS, *SPECIAL, as_directory])
def test_a_lock_file_that_is_not_a_regular_file_is_refused(
    logs: Path, foreign: Path, kind: Callable[[Path, Path], None]
) -> None:
    before = content(foreign)
    kind(logs / ".lock", foreign)
    check_start_is_refused(logs, because="expected a regular file, found a")
    assert content(foreign) == before


@pytest.mark.parametrize("kind", [*SPECIAL, as_link_to_a_device, as_circular_link, as_directory])
@pytest.mark.parametrize("name", [*CHECKPOINTS, MARKER, TOPIC_CONFIGS])
def test_a_checkpoint_that_cannot_be_read_is_refused_before_anything_is_changed(
    logs: Path, foreign: Path, name: str, kind: Callable[[Path, Path], None]
) -> None:
    write_partition(logs, {0: BATCHES})
    kind(logs / name, foreign)
    before = content(logs)
    with pytest.raises(
        (UnreadableFileError, UnexpectedFileError), match=re.escape(str(logs / name))
    ):
        Opened(logs).manager.startup()
    assert content(logs) == before


@pytest.mark.parametrize("kind", [*SPECIAL, as_file])
def test_what_is_named_like_a_partition_and_is_not_a_directory_is_left_alone(
    logs: Path, foreign: Path, kind: Callable[[Path, Path], None]
) -> None:
    write_partition(logs, {0: BATCHES})
    kind(logs / "events-0", foreign)
    before = (logs / "events-0").lstat()
    with Opened(logs).manager as manager:
        assert list(manager.logs) == [ORDERS]
        with pytest.raises(UnexpectedFileError, match="expected a directory, found a"):
            manager.get_or_create_log(EVENTS)
        assert manager.logs[ORDERS].append_as_leader(ONE_RECORD).last_offset == 3  # still online
    assert (logs / "events-0").lstat().st_ino == before.st_ino


@pytest.mark.parametrize("kind", [as_dangling_link, as_circular_link, as_link_to_a_device, as_pipe])
def test_what_is_not_of_kafka_and_leads_to_no_directory_is_left_alone(
    logs: Path, foreign: Path, kind: Callable[[Path, Path], None]
) -> None:
    write_partition(logs, {0: BATCHES})
    kind(logs / "mine", foreign)
    with Opened(logs).manager as manager:
        assert list(manager.logs) == [ORDERS]
    assert os.path.lexists(logs / "mine")


def test_a_segment_is_not_made_through_a_link_that_appears_while_a_log_is_open(
    logs: Path, foreign: Path
) -> None:
    before = content(foreign)
    with Opened(logs).manager as manager:
        log = manager.get_or_create_log(ORDERS)
        log.append_as_leader(ONE_RECORD)
        for suffix in (".log", ".index", ".timeindex", ".snapshot"):
            (logs / "orders-0" / f"{1:020d}{suffix}").symlink_to(foreign / "photo.jpg")
        log.roll()
        log.append_as_leader(ONE_RECORD)
    assert content(foreign) == before
    with Opened(logs).manager as manager:
        assert manager.get_log(ORDERS).log_end_offset == 2


# ---- what is replaced, and what is followed


@pytest.mark.parametrize("name", [*CHECKPOINTS, MARKER])
def test_a_link_to_nothing_is_not_a_missing_checkpoint(logs: Path, name: str) -> None:
    """Its disk may not be mounted; offsets that were deleted would be served again without it."""
    write_partition(logs, {0: BATCHES})
    (logs / name).symlink_to(logs / "nothing")
    with pytest.raises(UnreadableFileError, match="a file that does not exist") as caught:
        Opened(logs).manager.startup()
    assert str(caught.value).startswith(f"{logs / name}: ")
    assert (logs / name).is_symlink()


@pytest.mark.parametrize("temporary_target", ["photo.jpg", "nothing"])
def test_checkpoints_and_their_temporary_files_replace_links(
    logs: Path, foreign: Path, temporary_target: str
) -> None:
    before = content(foreign)
    write_partition(logs, {0: BATCHES})
    for name in (*CHECKPOINTS, MARKER):
        (logs / name).symlink_to(foreign / "photo.jpg")
        (logs / f"{name}.tmp").symlink_to(foreign / temporary_target)
    with Opened(logs).manager as manager:
        assert not os.path.lexists(logs / MARKER)
        (logs / MARKER).symlink_to(foreign / temporary_target)
        manager.store_topic_config("orders", {"cleanup.policy": "compact"})
    assert [name for name in (*CHECKPOINTS, MARKER) if (logs / name).is_symlink()] == []
    assert (logs / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert content(foreign) == before


def test_a_directory_in_the_place_of_a_temporary_file_is_named_and_stays(logs: Path) -> None:
    (logs / "checkpoint.tmp").mkdir()
    with pytest.raises(UnexpectedFileError, match=r"checkpoint\.tmp: .*found a directory"):
        DurableIO().write_atomically(logs / "checkpoint", b"0\n0\n")
    assert content(logs) == {"checkpoint.tmp": None}


def test_a_temporary_file_that_has_another_name_is_not_written_to(logs: Path) -> None:
    other = logs / "other"
    other.write_bytes(b"dear to somebody")
    (logs / "checkpoint.tmp").hardlink_to(other)
    DurableIO().write_atomically(logs / "checkpoint", b"0\n0\n")
    assert (logs / "checkpoint").read_bytes() == b"0\n0\n"
    assert other.read_bytes() == b"dear to somebody"


def test_a_log_directory_may_be_named_by_a_link(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(logs)
    with Opened(tmp_path / "link").manager as manager:
        manager.get_or_create_log(ORDERS).append_as_leader(ONE_RECORD)
        assert manager.get_log(ORDERS).directory == str(logs / "orders-0")
    assert (logs / "orders-0" / f"{0:020d}.log").stat().st_size == len(ONE_RECORD)
    with pytest.raises(ValueError, match="twice"):
        LogManager([logs, tmp_path / "link"])
