"""Files that nobody but this user, or root, can have written.

What is read here is run, so it is not enough that a file belongs to us: whoever can rename a
directory on the way to it can put another in its place. A directory is *private* if it and all its
parents, symbolic links resolved, belong to this user or to root, and nobody else may write there.

One exception, for ``/tmp`` and the like: in a directory with the sticky bit others may add entries
but not rename or remove ours, so one may be a parent, as long as what it holds on our way belongs
to us or to root, which is asked of each step anyway. It may not be the directory itself.

Permissions of a group count as somebody else's, also where the group has one member today. POSIX
access lists show up in them: the group's bits are the most that any entry of a list grants.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def is_private_directory(directory: Path) -> bool:
    """Return whether ``directory`` exists and is private, as described above."""
    try:
        steps = [os.lstat(step) for step in (directory, *directory.parents)]
    except OSError:
        return False
    if not directory.is_absolute() or steps[0].st_mode & _WRITABLE_BY_OTHERS:
        return False
    return all(
        stat.S_ISDIR(step.st_mode)  # False for a symbolic link: the caller resolves them
        and _is_ours(step)
        and (not step.st_mode & _WRITABLE_BY_OTHERS or bool(step.st_mode & stat.S_ISVTX))
        for step in steps
    )


def read_private_file(path: Path, most_bytes: int) -> bytes | None:
    """Return the content of a file in a private directory; None unless only we can have written it.

    A symbolic link is not followed, and what is no regular file is not read: the file that was
    opened is the one that is asked about.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe waits for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if (
            not stat.S_ISREG(about.st_mode)
            or not _is_ours(about)
            or about.st_mode & _WRITABLE_BY_OTHERS
            or about.st_size > most_bytes
        ):
            return None
        return os.pread(descriptor, about.st_size, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write_private_file(path: Path, content: bytes) -> bool:
    """Put ``content`` at ``path``, in a private directory; return whether that worked.

    Atomic: another process sees what was there before, or all of it. Any number may do it at once.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o644), "wb") as file:
            os.fchmod(
                file.fileno(), 0o644
            )  # readable by all, whatever the umask: see Docker images
            file.write(content)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        return False
    return True


def make_private_directory(directory: Path) -> bool:
    """Make ``directory``, and its parents, if it does not exist; return whether it is private."""
    try:
        # One by one: mkdir() would make parents that a group may write to, where the umask says so.
        for missing in (*reversed(directory.parents), directory):
            missing.mkdir(mode=0o755, exist_ok=True)
    except OSError:
        return False
    return is_private_directory(directory)


def _is_ours(about: os.stat_result) -> bool:
    return about.st_uid in {0, os.geteuid()}
