"""An adoption under way: what each step leaves on the disks, and how it is ended or undone.

==== ============================================ ==============================================
step what is done                                 what a crash after it leaves
==== ============================================ ==============================================
1    ``.pylog-adoption`` is made in each log      that directory: a broker that starts there ends,
     directory, with the names of all             since it is no partition's. Undone by removing it
2    copies of partitions are written in it       the same
3    ``plan.json`` is written in that of the      the same, and all that is to be done: it is ended
     first log directory                          by doing what is left of it
4    the copies are renamed to their places,      the same
     and entries are put into checkpoints
5    the records are put at the end of the        the same
     metadata's log, or the snapshot beside it
6    ``.pylog-adoption`` is renamed to a          nothing is left to do; a broker starts once the
     directory that brokers delete when they      first one is renamed, too, and deletes what is
     start, and removed, everywhere, from the     left of them; it is ended, not undone
     first log directory last
==== ============================================ ==============================================

What is undone after step 3 says so first, in ``undoing`` beside the plan: from then on it is
undone to its end, since a log directory whose mark is gone has no copies to be put in place.

A controller that is started meanwhile runs until the broker beside it has ended, and its log goes
on. So where the records go is looked for when they are written; and once it has gone on after them,
the adoption can be ended, and not be undone.

A directory cannot be removed at once, and half of a plan is another plan; but it can be renamed.

Source: LogManager.loadLogs, LogManager.addLogToBeDeleted (Kafka 4.4).
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.directory_lock import DirectoryLock
from pylog.files.durable_io import TEMPORARY_SUFFIX, DurableIO
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    DELETE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    find_partition_directory_name,
    log_delete_directory_name,
    parse_partition_directory_name,
)
from pylog.files.partition_metadata import write_partition_metadata
from pylog.files.storage import open_file
from pylog.locations import join, name_of, parent_of
from pylog.model import TopicPartition
from pylog.recovery.adoption_target import ADOPTION, AdoptionTarget, MetadataFile
from pylog.scheduling.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PLAN = "plan.json"
UNDOING = "undoing"
"""What the mark in the first log directory has from when all that was written is taken back."""
_MARK = TopicPartition(ADOPTION.lstrip("."), 0)
"""What a mark is called as a partition that is to be deleted."""
LOG_DIRECTORIES = "log-directories.json"
CHECKPOINTS = (
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
)
"""Those of a log directory that have an entry of each partition."""


def begun_in(log_directories: Sequence[str]) -> list[str]:
    """Return the log directories of an adoption that was interrupted in some; [] if none was."""
    marked = [each for each in log_directories if os.path.isdir(join(each, ADOPTION))]  # noqa: PTH112
    for each in marked:
        with suppress(SegmentVanishedError):  # it was interrupted before anything was copied
            with open_file(join(join(each, ADOPTION), LOG_DIRECTORIES)) as file:
                found: list[str] = json.loads(file.read_at(0, file.size()))
            return found
    return marked


def remove_mark(io: DurableIO, log_directory: str) -> None:
    """Remove the mark of an adoption, which is there as a whole or not at all.

    What was done beside it is on the disk before.
    """
    mark = join(log_directory, ADOPTION)
    if os.path.isdir(mark):  # noqa: PTH112 - kept as text
        io.sync_directory(log_directory)
        io.replace(mark, join(log_directory, log_delete_directory_name(_MARK, uuid.uuid4())))
        io.sync_directory(log_directory)
    for name in os.listdir(log_directory):  # noqa: PTH208 - kept as text
        if is_left_of_mark(name):
            shutil.rmtree(join(log_directory, name))


def is_left_of_mark(name: str) -> bool:
    """Whether a directory is what a crash has left of a mark that was removed."""
    found = find_partition_directory_name(name)
    return found is not None and found.state == DELETE_DIR_SUFFIX and found.topic_partition == _MARK


def write_empty_partition(io: DurableIO, directory: str, topic_id: uuid.UUID) -> None:
    """Write the directory of a partition without records."""
    io.make_directory(directory)
    with io.open(join(directory, f"{0:020d}.log"), create=True) as file:
        file.sync()
    write_partition_metadata(io, join(directory, "partition.metadata"), topic_id)
    io.sync_directory(directory)


def begin_undoing(io: DurableIO, log_directories: Sequence[str]) -> None:
    """Have what was all written taken back, and not ended, whatever is interrupted from now on.

    `LogDirectoryError`: a log directory has all of it already.
    """
    undoing = join(join(log_directories[0], ADOPTION), UNDOING)
    if os.path.exists(undoing):  # noqa: PTH110 - kept as text
        return
    for each in log_directories:
        if not os.path.isdir(join(each, ADOPTION)):  # noqa: PTH112 - kept as text
            reason = "all is in its place here: end the call with resume (--resume)"
            raise LogDirectoryError(reason, each)
    io.write_atomically(undoing, b"")


class MovedPartition(NamedTuple):
    """The copy of a partition, and the directory that it becomes."""

    copy: str
    target: str
    offsets: dict[str, int]
    """Its entries in the checkpoints of the log directory, by their names."""


class Adoption:
    """The log directories that partitions are put into, which this process has locked meanwhile.

    Enter it as a context manager; whatever is raised within the block undoes what was begun.
    """

    def __init__(self, log_directories: Sequence[str]) -> None:
        self.log_directories = list(log_directories)
        self._io = DurableIO()
        self._locks = ExitStack()
        self._is_planned = False

    def __enter__(self) -> Adoption:
        for each in self.log_directories:
            self._locks.enter_context(DirectoryLock(each))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is not None and not self._is_planned:
                with suppress(OSError):  # the next call says how to go on
                    self.undo()
        finally:
            self._locks.close()

    def begin(self) -> None:
        """Keep brokers from starting, and write down which log directories belong together."""
        names = json.dumps(self.log_directories).encode()
        for each in self.log_directories:
            self._io.make_directory(join(each, ADOPTION))
            self._io.write_atomically(join(join(each, ADOPTION), LOG_DIRECTORIES), names)
            self._io.sync_directory(each)

    def place_in(self, log_directory: str) -> str:
        """Return where copies for a log directory are written."""
        return join(log_directory, ADOPTION)

    def write_empty(self, directory: str, topic_id: uuid.UUID) -> None:
        """Write the directory of a partition without records."""
        write_empty_partition(self._io, directory, topic_id)

    def set_topic_id(self, directory: str, topic_id: uuid.UUID) -> None:
        """Give a copy another topic id."""
        write_partition_metadata(self._io, join(directory, "partition.metadata"), topic_id)

    def end(
        self,
        moved: Iterable[MovedPartition],
        values: Sequence[bytes],
        topic_ids: Iterable[uuid.UUID],
    ) -> None:
        """Write down what is to be done, and do it."""
        now_ms = SystemClock().milliseconds()
        files = AdoptionTarget(self.log_directories, is_begun=True).metadata_files(values, now_ms)
        plan = {
            "version": 1,
            "logDirectories": self.log_directories,
            "partitions": [each._asdict() for each in moved],
            "topicIds": [each.hex for each in topic_ids],
            "records": [each.hex() for each in values],
            "timestampMs": now_ms,
            "metadata": [{**each._asdict(), "data": each.data.hex()} for each in files],
            "checkpoints": self._checkpoints_now(),
        }
        text = json.dumps(plan, indent=1).encode()
        for each in self.log_directories:
            _give_to_owner(join(each, ADOPTION), each)
        self._io.write_atomically(join(self.place_in(self.log_directories[0]), _PLAN), text)
        self._is_planned = True
        self._finish(plan)

    def undo(self) -> None:
        """Take back what was begun."""
        plan = self._plan()
        files = [] if plan is None else [_metadata_file(each) for each in plan["metadata"]]
        for what in files:
            _ensure_can_be_taken_back(what)
        if plan is not None:
            begin_undoing(self._io, self.log_directories)
        for what in files:
            self._take_back(what)
        for each in _partitions(plan):
            if os.path.isdir(each.target) and not os.path.lexists(each.copy):  # noqa: PTH112
                self._io.replace(each.target, each.copy)
        for path, data in {} if plan is None else plan["checkpoints"].items():
            if data is None:
                self._remove_written(path)
            else:
                self._io.write_atomically(path, bytes.fromhex(data))
                _give_to_owner(path, parent_of(path))
        self._remove_marks()

    def finish(self) -> bool:
        """Do what is left of a plan; without one, or if it was being undone, undo: False."""
        plan = self._plan()
        if plan is None or os.path.exists(join(self.place_in(self.log_directories[0]), UNDOING)):  # noqa: PTH110
            self.undo()
            return False
        self._is_planned = True
        self._finish(plan)
        return True

    def _take_back(self, what: MetadataFile) -> None:
        directory = parent_of(what.path)
        if what.position:
            if _bytes_from(what) and what.data.startswith(_bytes_from(what)):
                with self._io.open(what.path) as file:
                    file.truncate(what.position)
                    file.sync()
            return
        for each in what.replaces:
            if os.path.exists(_kept(each)):  # noqa: PTH110 - kept as text
                self._io.replace(_kept(each), each)
        with suppress(FileNotFoundError):
            self._remove_written(what.path)
            if not os.listdir(directory):  # noqa: PTH208 - kept as text
                self._io.remove_directory(directory)
                return
            self._io.sync_directory(directory)

    def _remove_written(self, path: str) -> None:
        """Remove a file, and what a write of it has left that was interrupted."""
        for each in (path, path + TEMPORARY_SUFFIX):
            self._io.remove(each, missing_ok=True)

    def _plan(self) -> dict[str, Any] | None:
        try:
            with open_file(join(self.place_in(self.log_directories[0]), _PLAN)) as file:
                plan: dict[str, Any] = json.loads(file.read_at(0, file.size()))
        except SegmentVanishedError:
            return None
        return plan

    def _remove_marks(self) -> None:
        for each in reversed(self.log_directories):
            remove_mark(self._io, each)

    def _finish(self, plan: dict[str, Any]) -> None:
        partitions = _partitions(plan)
        for each in partitions:
            if os.path.isdir(each.copy):  # noqa: PTH112 - kept as text
                self._io.replace(each.copy, each.target)
        for directory in plan["logDirectories"]:
            self._add_to_checkpoints(directory, partitions)
            self._io.sync_directory(directory)
        for what in map(_metadata_file, plan["metadata"]):
            if not os.path.exists(what.path):  # noqa: PTH110 - kept as text
                self._take_back(what)  # a directory without a log, which was made for it
        target = AdoptionTarget(self.log_directories, is_begun=True)
        known = {each.topic_id.hex for each in target.image.topics}
        if not known.issuperset(plan["topicIds"]):
            # Where it ends now: a controller may have run meanwhile.
            values = [bytes.fromhex(each) for each in plan["records"]]
            for what in target.metadata_files(values, plan["timestampMs"]):
                self._write(what)
        self._remove_marks()

    def _add_to_checkpoints(self, log_directory: str, partitions: Iterable[MovedPartition]) -> None:
        here = [each for each in partitions if parent_of(each.target) == log_directory]
        for name in CHECKPOINTS:
            new = {_partition_of(each): each.offsets[name] for each in here if name in each.offsets}
            if new:
                path = join(log_directory, name)
                stored = read_offset_checkpoint(path)
                write_offset_checkpoint(self._io, path, {**stored, **new})
                _give_to_owner(path, log_directory)

    def _checkpoints_now(self) -> dict[str, str | None]:
        """Return the bytes of each checkpoint, by its path; None where there is none."""
        found: dict[str, str | None] = {}
        for directory in self.log_directories:
            for name in CHECKPOINTS:
                path = join(directory, name)
                found[path] = None
                with suppress(SegmentVanishedError), open_file(path) as file:
                    found[path] = file.read_at(0, file.size()).hex()
        return found

    def _write(self, what: MetadataFile) -> None:
        directory = parent_of(what.path)
        self._io.make_directory(directory, exist_ok=True)
        if not what.position:
            self._io.write_atomically(what.path, what.data)
        else:
            with self._io.open(what.path) as file:
                file.truncate(what.position)
                file.write_at(what.position, what.data)
                file.sync()
        for path in what.replaces:
            if os.path.exists(path):  # noqa: PTH110 - kept as text
                self._io.replace(path, _kept(path))
        _give_to_owner(directory, parent_of(directory))
        self._io.sync_directory(directory)


def _kept(path: str) -> str:
    """Return where a file of the metadata is kept that another one replaces."""
    return join(join(parent_of(parent_of(path)), ADOPTION), name_of(path))


def _partition_of(moved: MovedPartition) -> TopicPartition:
    return parse_partition_directory_name(name_of(moved.target)).topic_partition


def _partitions(plan: dict[str, Any] | None) -> list[MovedPartition]:
    return [] if plan is None else [MovedPartition(**each) for each in plan["partitions"]]


def _metadata_file(fields: dict[str, Any]) -> MetadataFile:
    return MetadataFile(**{**fields, "data": bytes.fromhex(fields["data"])})


def _bytes_from(what: MetadataFile) -> bytes:
    """Return what a file of the metadata has where bytes were to be put, and one byte more."""
    try:
        with open_file(what.path) as file:
            return file.read_at(what.position, len(what.data) + 1)
    except SegmentVanishedError:
        return b""


def _ensure_can_be_taken_back(what: MetadataFile) -> None:
    """Raise where a controller has read the records, and has gone on after them."""
    there = _bytes_from(what)
    has_run = there.startswith(what.data) and len(there) > len(what.data)
    if not what.position and there:
        names = os.listdir(parent_of(what.path))  # noqa: PTH208 - kept as text
        has_run = any(name.endswith(LOG_FILE_SUFFIX) for name in names)
    if has_run:
        reason = (
            "a controller has run meanwhile, and knows the topics: end the adoption with resume "
            "(--resume)"
        )
        raise LogDirectoryError(reason, what.path)


def _give_to_owner(path: str, like: str) -> None:
    """Give a file or directory, and all below it, to the owner of another one."""
    owner = os.stat(like)  # noqa: PTH116 - kept as text
    own = os.lstat(path)
    if (own.st_uid, own.st_gid) != (owner.st_uid, owner.st_gid):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    if stat.S_ISDIR(own.st_mode):
        for name in os.listdir(path):  # noqa: PTH208 - kept as text
            _give_to_owner(join(path, name), like)
