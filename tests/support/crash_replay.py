"""What a crash leaves of a directory: recorded system calls, done again on a disk that forgets."""

from __future__ import annotations

import os
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(StrEnum):
    """A system call that changes, or makes durable, what is on the disk."""

    CREATE = "create"
    OPEN = "open"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    REPLACE = "replace"
    REMOVE = "remove"
    MAKE_DIRECTORY = "make-directory"
    REMOVE_DIRECTORY = "remove-directory"
    SYNC_DIRECTORY = "sync-directory"


class Operation(NamedTuple):
    """One system call that succeeded; paths are relative to the root, which is ``.``.

    ``position`` is that of a write, or the new length of a truncated file; ``target`` the new
    name of what was replaced.
    """

    kind: Kind
    path: str
    position: int = 0
    data: bytes = b""
    target: str = ""

    def __str__(self) -> str:
        match self.kind:
            case Kind.WRITE:
                return f"write {self.path} {self.position}+{len(self.data)}"
            case Kind.TRUNCATE:
                return f"truncate {self.path} {self.position}"
            case Kind.REPLACE:
                return f"replace {self.path} {self.target}"
            case _:
                return f"{self.kind} {self.path}"

    def torn(self, size_bytes: int) -> Operation:
        """Return the write of which only the first ``size_bytes`` reached the disk."""
        assert self.kind is Kind.WRITE
        return self._replace(data=self.data[:size_bytes])


class Names(Enum):
    """What of the names that changed since a directory's last sync is on the disk.

    A change needs the earlier ones of the names it changes: who removes what was renamed finds
    nothing unless it was renamed. Others are independent, and may come to the disk in any order.
    """

    ALL = "all changes"
    NONE = "none"
    LAST = "the last change of all, and what it needs"
    WITHOUT_FIRST = "all but the first change in each directory, and what needs that"


class _Loss(NamedTuple):
    """What of the arguments of `replay` says how to build."""

    unsynced: bool
    names: Names
    keep_lengths: bool
    moved: tuple[_Move, ...] = ()


class _Move(NamedTuple):
    """A rename between directories: what had which name in the first one, and has it no more."""

    source: _Directory
    name: str
    target: _Directory
    new_name: str


class _File:
    """A file's content now, and what of it is on the disk; zeros at the end are not stored."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.size_bytes = len(data)
        self.synced = (bytes(data), len(data))

    def write(self, position: int, data: bytes) -> None:
        self.data.extend(bytes(max(0, position - len(self.data))))
        self.data[position : position + len(data)] = data
        self.size_bytes = max(self.size_bytes, position + len(data))

    def truncate(self, size_bytes: int) -> None:
        del self.data[size_bytes:]
        self.size_bytes = size_bytes

    def sync(self) -> None:
        self.synced = (bytes(self.data), self.size_bytes)

    def build(self, path: Path, loss: _Loss) -> None:
        data, size_bytes = self.synced if loss.unsynced else (self.data, self.size_bytes)
        if loss.unsynced and loss.keep_lengths:
            size_bytes = self.size_bytes
        path.write_bytes(data)
        os.truncate(path, size_bytes)


class _Directory:
    """A directory's names now, those that are on the disk, and the changes in between."""

    def __init__(self) -> None:
        self.names: dict[str, _File | _Directory] = {}
        self.synced: dict[str, _File | _Directory] = {}
        self.unsynced: list[_Change] = []
        self.changed_last = False

    def sync(self) -> None:
        self.synced = dict(self.names)
        self.unsynced = []

    def change(self, change: _Change) -> None:
        _apply(change, self.names)
        self.unsynced.append(change)

    def surviving(self, names: Names) -> dict[str, _File | _Directory]:
        """Return the names after a crash."""
        if names is Names.ALL:
            return dict(self.names)
        kept: list[_Change] = []
        if names is Names.LAST and self.changed_last:
            kept = _needed_by_last(self.unsynced)
        elif names is Names.WITHOUT_FIRST:
            kept = _independent_of_first(self.unsynced)
        survivors = dict(self.synced)
        for change in kept:
            _apply(change, survivors)
        return survivors

    def build(self, path: Path, loss: _Loss) -> None:
        survivors = self.surviving(loss.names)
        for each in loss.moved:
            node = survivors.get(each.name) if each.source is self else None
            if node and each.target.surviving(loss.names).get(each.new_name) is node:
                del survivors[each.name]
        for name, node in survivors.items():
            if isinstance(node, _Directory):
                (path / name).mkdir()
            node.build(path / name, loss)


_Change = dict[str, _File | _Directory | None]
"""What one operation gives some names of a directory; None: they are removed."""


def _apply(change: _Change, names: dict[str, _File | _Directory]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _needed_by_last(changes: list[_Change]) -> list[_Change]:
    needed, names = list[_Change](), set[str]()
    for change in reversed(changes):
        if not needed or names & change.keys():
            needed.append(change)
            names |= change.keys()
    return needed[::-1]


def _independent_of_first(changes: list[_Change]) -> list[_Change]:
    kept, names = list[_Change](), set[str]()
    for number, change in enumerate(changes):
        if number == 0 or names & change.keys():
            names |= change.keys()
        else:
            kept.append(change)
    return kept


class _Disk:
    """The files below a root, as the operations so far have left them."""

    def __init__(self, root: _Directory) -> None:
        self.root = root
        self._changed_last: _Directory | None = None
        self.moves: list[_Move] = []

    def apply(self, operation: Operation) -> None:
        kind, path, position, data, target = operation
        parent, name = self._parent(path)
        match kind:
            case Kind.CREATE:
                self._change(parent, {name: _File()})
            case Kind.WRITE:
                self._file(path).write(position, data)
            case Kind.TRUNCATE:
                self._file(path).truncate(position)
            case Kind.SYNC:
                self._file(path).sync()
            case Kind.REPLACE:
                self._rename(parent, name, target)
            case Kind.REMOVE | Kind.REMOVE_DIRECTORY:
                assert name in parent.names
                self._change(parent, {name: None})
            case Kind.MAKE_DIRECTORY:
                self._change(parent, {name: _Directory()})
            case Kind.SYNC_DIRECTORY:
                self._directory(path).sync()
            case Kind.OPEN:
                pass

    def _rename(self, parent: _Directory, name: str, target: str) -> None:
        new_parent, new_name = self._parent(target)
        node = parent.names[name]
        if new_parent is parent:
            self._change(parent, {name: None, new_name: node})
            return
        # The worst that may be: each directory comes to the disk with its own sync.
        self._change(parent, {name: None})
        self._change(new_parent, {new_name: node})
        self.moves.append(_Move(parent, name, new_parent, new_name))

    def _change(self, directory: _Directory, change: _Change) -> None:
        if self._changed_last is not None:
            self._changed_last.changed_last = False
        self._changed_last = directory
        directory.changed_last = True
        directory.change(change)

    def _parent(self, path: str) -> tuple[_Directory, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent or "."), name

    def _directory(self, path: str) -> _Directory:
        node: _File | _Directory = self.root
        for name in [] if path == "." else path.split("/"):
            assert isinstance(node, _Directory)
            node = node.names[name]
        assert isinstance(node, _Directory)
        return node

    def _file(self, path: str) -> _File:
        parent, name = self._parent(path)
        node = parent.names[name]
        assert isinstance(node, _File)
        return node


def replay(
    operations: Iterable[Operation],
    root: str | os.PathLike[str],
    *,
    lose_unsynced: bool,
    names: Names = Names.ALL,
    keep_lengths: bool = False,
    moves_are_whole: bool = False,
) -> None:
    """Make ``root`` what a crash after ``operations`` leaves of the directory they were done in.

    Parameters
    ----------
    operations
        A recording, or the beginning of one; its last write may be torn.
    root
        An empty directory; or what the recorded one held before, all of it on the disk.
    lose_unsynced
        A file's content is that of its last sync, nothing where there was none. False: all that
        was written, as after the death of the process.
    names
        Which of the names that were created, renamed or removed since the last sync of their
        directory are on the disk.
    keep_lengths
        With ``lose_unsynced``: files keep the length they had at the end, and what was appended
        since the last sync reads as zeros.
    moves_are_whole
        As on file systems with a journal: what was moved to another directory is in one of both.
        False: each directory comes to the disk with its own sync, and it may be in both.
    """
    root = Path(root)
    disk = _Disk(_load(root))
    for operation in operations:
        disk.apply(operation)
    _clear(root)
    moved = tuple(disk.moves) if moves_are_whole else ()
    disk.root.build(root, _Loss(lose_unsynced, names, keep_lengths, moved))


def _load(path: Path) -> _Directory:
    directory = _Directory()
    for child in path.iterdir():
        directory.names[child.name] = _load(child) if child.is_dir() else _File(child.read_bytes())
    directory.sync()
    return directory


def _clear(path: Path) -> None:
    for child in path.iterdir():
        if child.is_dir():
            _clear(child)
            child.rmdir()
        else:
            child.unlink()
