"""The directories that a whole cluster moves to, and what each step there leaves on the disks.

==== ============================================ ==============================================
step what is done                                 what a crash after it leaves
==== ============================================ ==============================================
1    ``.pylog-adoption`` is made in each          that directory, and no ``meta.properties``: no
     directory; what formatting has laid down     node starts there. Undone by putting back what
     goes below it                                formatting had laid down
2    all that is new is written below it          the same
3    ``whole`` is written in the first one        the same, and all that is new: it is ended by
                                                  doing what is left of steps 4 to 6
4    the new entries are renamed to their places  the same
5    each ``meta.properties`` is renamed last     the same; a broker ends at ``.pylog-adoption``
6    ``.pylog-adoption`` is removed everywhere,   nothing is left to do; the first node starts
     from the first directory last, as at the     once it is gone there, too
     end of `pylog.recovery.adoption_steps`
==== ============================================ ==============================================
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.files.directory_lock import LOCK_FILE, DirectoryLock
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import META_PROPERTIES
from pylog.files.meta_properties import MetaProperties, read_meta_properties
from pylog.files.owned_directories import writable_log_directory
from pylog.locations import join, parent_of
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.recovery.adoption_steps import (
    LOG_DIRECTORIES,
    UNDOING,
    begin_undoing,
    is_left_of_mark,
    remove_mark,
)
from pylog.recovery.adoption_target import ADOPTION
from pylog.writing.node_metadata import BOOTSTRAP_CHECKPOINT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_BEFORE, _AFTER, _WHOLE, _MADE = "before", "after", "whole", "made"
_CLEARED = "cleared"
_OF_FORMATTING = {META_PROPERTIES, BOOTSTRAP_CHECKPOINT, str(CLUSTER_METADATA)}
"""What formatting lays down."""


def place_for_node(path: str | os.PathLike[str]) -> tuple[str, MetaProperties | None]:
    """Return a directory that a node moves to, and what it was formatted as; None if it is new.

    Raises
    ------
    LogDirectoryError
        A node has run there, or something else is there.
    """
    place = os.path.abspath(writable_log_directory(path)).rstrip("/")  # noqa: PTH100 - kept as text
    names = set(os.listdir(place)) if os.path.isdir(place) else set()  # noqa: PTH112, PTH208
    if ADOPTION in names:
        reason = (
            "an earlier call was interrupted and has left this: end it with resume (--resume), or "
            "take it back with undo (--undo)"
        )
        raise LogDirectoryError(reason, join(place, ADOPTION))
    names.discard(LOCK_FILE)  # a call that was killed, or undone, leaves it
    names = {each for each in names if not is_left_of_mark(each)}
    if not names:
        return place, None
    others = sorted(names - _OF_FORMATTING)
    metadata = join(place, str(CLUSTER_METADATA))
    has_run = os.path.isdir(metadata) and any(  # noqa: PTH112 - kept as text
        name.endswith(".log") and os.path.getsize(join(metadata, name))  # noqa: PTH202
        for name in os.listdir(metadata)  # noqa: PTH208 - kept as text
    )
    if others or has_run or META_PROPERTIES not in names:
        what = others[0] if others else f"a log of a node that has run, {CLUSTER_METADATA}"
        if META_PROPERTIES not in names:
            what = f"no {META_PROPERTIES}"
        reason = (
            f"a whole cluster moves to directories that do not exist, are empty, or were only "
            f"formatted, and here is {what}"
        )
        raise LogDirectoryError(reason, place)
    return place, read_meta_properties(join(place, META_PROPERTIES))


class ClusterPlaces:
    """Directories that a cluster moves to, locked meanwhile.

    Enter it as a context manager; whatever is raised before all is written undoes what was begun.
    """

    def __init__(self, places: Sequence[str]) -> None:
        self.places = list(places)
        self._io = DurableIO()
        self._locks = ExitStack()
        self._made: list[str] = []

    def __enter__(self) -> ClusterPlaces:
        with ExitStack() as locks:
            for each in self.places:
                if self._io.make_directory(each, exist_ok=True):
                    self._made.append(each)
                    self._io.sync_directory(parent_of(each) or os.curdir)
                    locks.callback(_remove_if_empty, each)
                locks.enter_context(DirectoryLock(each))
            self._locks = locks.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None and not self._is_whole():
                with suppress(OSError):  # the next call says how to go on
                    self.undo()
        finally:
            self._locks.close()

    def begin(self) -> None:
        """Keep nodes from starting, and put aside what formatting has laid down."""
        names = json.dumps(self.places).encode()
        for each in self.places:
            mark = join(each, ADOPTION)
            self._io.make_directory(mark)
            self._io.write_atomically(join(mark, LOG_DIRECTORIES), names)
            if each in self._made:
                self._io.write_atomically(join(mark, _MADE), b"")
            self._io.make_directory(join(mark, _BEFORE))
            self._io.make_directory(join(mark, _AFTER))
            self._io.sync_directory(mark)
            self._io.sync_directory(each)
            for name in sorted(_names_beside_mark(each), key=_is_no_identity):
                self._io.replace(join(each, name), join(join(mark, _BEFORE), name))
            self._io.sync_directory(join(mark, _BEFORE))
            self._io.sync_directory(each)

    def new_in(self, place: str) -> str:
        """Return where the new entries of a directory are written."""
        return join(join(place, ADOPTION), _AFTER)

    def working_place_in(self, place: str) -> str:
        """Return where copies are made that become new entries."""
        return join(place, ADOPTION)

    def end(self) -> None:
        """Put all in place, once it was written."""
        for each in self.places:
            self._io.sync_directory(self.new_in(each))
        self._io.write_atomically(join(join(self.places[0], ADOPTION), _WHOLE), b"")
        self.finish()

    def finish(self) -> bool:
        """Do what is left to do; undo what was not all written, and return False."""
        if not self._is_whole() or self._is_in_first(UNDOING):
            self.undo()
            return False
        for each in self.places:
            for name in _names_in(self.new_in(each)):
                if name != META_PROPERTIES:
                    self._io.replace(join(self.new_in(each), name), join(each, name))
            self._io.sync_directory(each)
        for each in self.places:
            path = join(self.new_in(each), META_PROPERTIES)
            if os.path.exists(path):  # noqa: PTH110 - kept as text
                self._io.replace(path, join(each, META_PROPERTIES))
                self._io.sync_directory(each)
        for each in reversed(self.places):
            remove_mark(self._io, each)
        return True

    def undo(self) -> None:
        """Make the directories what they were before; those that did not exist go."""
        if self._is_whole():
            begin_undoing(self._io, self.places)
        for each in reversed(self.places):
            mark = join(each, ADOPTION)
            if not os.path.isdir(mark):  # noqa: PTH112 - kept as text
                continue
            before, cleared = join(mark, _BEFORE), join(mark, _CLEARED)
            if self._is_whole() and not os.path.exists(cleared):  # noqa: PTH110 - kept as text
                for name in _names_beside_mark(each):
                    _remove(join(each, name))
                self._io.sync_directory(each)
                self._io.write_atomically(cleared, b"")
            for name in sorted(_names_in(before), key=_is_no_identity, reverse=True):
                self._io.replace(join(before, name), join(each, name))
            if os.path.exists(join(mark, _MADE)):  # noqa: PTH110 - kept as text
                self._locks.callback(_remove_if_empty, each)
            remove_mark(self._io, each)

    def _is_whole(self) -> bool:
        return self._is_in_first(_WHOLE)

    def _is_in_first(self, name: str) -> bool:
        return os.path.exists(join(join(self.places[0], ADOPTION), name))  # noqa: PTH110


def is_of_a_cluster(place: str) -> bool:
    """Whether it is a whole cluster that was interrupted on its way here."""
    return os.path.isdir(join(join(place, ADOPTION), _AFTER))  # noqa: PTH112 - kept as text


def _names_in(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - kept as text
    except FileNotFoundError:
        return []


def _is_no_identity(name: str) -> bool:
    """Sort ``meta.properties``, without which no node starts, before all else."""
    return name != META_PROPERTIES


def _names_beside_mark(place: str) -> list[str]:
    names = [each for each in _names_in(place) if each not in (ADOPTION, LOCK_FILE)]
    return [each for each in names if not is_left_of_mark(each)]


def _remove_if_empty(directory: str) -> None:
    with suppress(OSError):
        os.rmdir(directory)  # noqa: PTH106 - kept as text


def _remove(path: str) -> None:
    if os.path.isdir(path):  # noqa: PTH112 - kept as text
        shutil.rmtree(path)
    else:
        os.unlink(path)  # noqa: PTH108 - kept as text
