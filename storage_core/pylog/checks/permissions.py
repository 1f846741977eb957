"""What the broker's user may not do in log directories, and what whoever asks may not look at.

A broker does what it does at its start, and soon after it, as one user. That is the owner of most
of what lies in a log directory, or the one that is named; what whoever asks may do says nothing of
it. The start of a log is simulated on an overlay that knows the user (`pylog.files.overlay`); here
is what a broker does right in a log directory.

What this process may not read is not known, whatever has been found without it.

Source: LogManager.lockLogDirs, loadDirectoryIds, loadLogs, checkpointLogRecoveryOffsets,
ReplicaManager.checkpointHighWatermarks (Kafka 4.4).
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError
from pylog.files import disk
from pylog.files.directory_lock import LOCK_FILE
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
)
from pylog.files.file_user import DeniedError, FileUser
from pylog.files.overlay import Overlay
from pylog.files.storage import open_file
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.locations import is_remote, join, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
_OWNERS_FILE_BITS, _OWNERS_DIRECTORY_BITS = 0o600, 0o700


class BrokerUsers:
    """Whom brokers run as on log directories. Any number of threads.

    Parameters
    ----------
    as_user
        Who it is on all of them; None for the owner of most of what lies in each.
    """

    def __init__(self, as_user: FileUser | None = None) -> None:
        self._as_user = as_user
        self._known: dict[str, FileUser | None] = {}

    def of(self, log_directory: str) -> FileUser | None:
        """Return the user; None where nothing can be denied to him, or he is not known.

        He is root, or the directory lies in an object store.
        """
        if log_directory not in self._known:
            user = self._as_user or _owner_of(log_directory)
            self._known[log_directory] = None if user is None or user.is_root else user
        return self._known[log_directory]

    def directory_findings(self, log_directory: str) -> list[Finding]:
        """Return what is denied right in a log directory; else whose verdict it is, if in doubt."""
        user = self.of(log_directory)
        if user is not None:
            return list(_directory_denials(log_directory, user))
        doubt = None if self._as_user is not None else _doubtful_user(log_directory)
        return [] if doubt is None else [doubt]


def _owner_of(log_directory: str) -> FileUser | None:
    """Return the owner of most of what lies in a log directory, itself included."""
    if is_remote(log_directory):
        return None
    owners: Counter[int] = Counter()
    with suppress(OSError):
        owners[os.stat(log_directory).st_uid] += 1  # noqa: PTH116 - kept as text
        with os.scandir(log_directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    owners[entry.stat().st_uid] += 1
    return FileUser.of(owners.most_common(1)[0][0]) if owners else None


def restricted(directory: str, user: FileUser | None) -> FileUser | None:
    """Return the user if something in a partition's directory may be denied to him, else None."""
    if user is None:
        return None
    try:
        status = os.stat(directory)  # noqa: PTH116 - kept as text
        is_own = status.st_uid == user.uid and _has(status, _OWNERS_DIRECTORY_BITS)
        with os.scandir(directory) as entries:
            for entry in entries if is_own else ():
                status = entry.stat()
                is_own = is_own and status.st_uid == user.uid and _has(status, _OWNERS_FILE_BITS)
    except OSError:
        return user
    return None if is_own else user


def _has(status: os.stat_result, bits: int) -> bool:
    return status.st_mode & bits == bits


def denial(path: str, error: BaseException) -> Finding | None:
    """Return what an error at a simulated start means if somebody was denied something."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, PermissionError):
        cause = cause.__cause__
    if cause is None:
        return None
    if isinstance(cause, DeniedError):
        effect = None if cause.is_known else Effect.UNKNOWN
        reason = cause.strerror or ""
        return kinds.FORBIDDEN.found(path, reason, severity=Severity.ERROR, own_effect=effect)
    return kinds.UNREADABLE.found(path, f"this process may not read it: {cause}")


def _directory_denials(log_directory: str, user: FileUser) -> Iterator[Finding]:
    """Yield what the broker's user may not do right in a log directory, in a broker's order."""
    with Overlay(is_quiet=True, user=user) as overlay:
        root = overlay.path(log_directory)
        for path, attempt in _attempts(root, overlay):
            try:
                attempt()
            except (LogStorageError, PermissionError) as error:
                found = denial(join(log_directory, path[len(root) + 1 :]).rstrip("/"), error)
                if found is not None and found.kind == kinds.FORBIDDEN:
                    yield found


def _attempts(root: str, overlay: Overlay) -> Iterator[tuple[str, Callable[[], object]]]:
    yield root, partial(_list, root)
    path = join(root, LOCK_FILE)
    yield path, lambda: overlay.open(path, create=True).close()
    for each in (META_PROPERTIES, *_CHECKPOINTS):
        yield join(root, each), partial(_open, join(root, each))
    yield (
        join(root, CLEAN_SHUTDOWN),
        partial(overlay.remove, join(root, CLEAN_SHUTDOWN), missing_ok=True),
    )
    for each in _CHECKPOINTS:
        yield join(root, each), partial(overlay.write_atomically, join(root, each), b"")


def _list(path: str) -> None:
    with disk.scandir(path):
        pass


def _open(path: str) -> None:
    open_file(path).close()


def is_before_loading(denied: Finding) -> bool:
    """Whether a broker that is denied this, right in a log directory, loads no partition there.

    It takes the directory offline later where it may not lock it, or change its checkpoints.
    """
    is_later = name_of(denied.path) in (LOCK_FILE, *_CHECKPOINTS)
    return denied.effect is Effect.OFFLINE and not is_later


def is_not_listed(log_directory: str, denied: Sequence[Finding]) -> bool:
    """Whether a broker may look into a log directory, and not list it.

    It goes without it from the start, even if the log of the metadata is there, which it finds.
    """
    paths = [each.path for each in denied if each.effect is Effect.OFFLINE]
    return paths[:1] == [log_directory] and join(log_directory, META_PROPERTIES) not in paths


def _doubtful_user(log_directory: str) -> Finding | None:
    """Return that a verdict for root says nothing of whoever asks, who may start no broker here.

    A broker seldom runs as root. So where all is root's, and another user asks, who starts it has
    to be said.
    """
    asking = FileUser.of_process()
    owner = _owner_of(log_directory)
    if asking.is_root or owner is None or not owner.is_root:
        return None
    found = next(_directory_denials(log_directory, asking), None)
    if found is None:
        return None
    message = (
        f"root owns the files, and {found.message}: a broker may start as root alone; name its "
        "user with --as-user"
    )
    return found._replace(
        severity=Severity.WARNING, message=message, own_effect=Effect.UNKNOWN, own_action=_DEPENDS
    )


_DEPENDS = "as root, it starts; as another user, it does not, or takes this log directory offline"


def with_own_limits(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings; of each file that this process may not read, that its content is not known.

    Whatever is said of such a file was found without it.
    """
    if not os.geteuid():
        return list(findings)
    known: dict[str, Finding] = {}
    kept = []
    for each in findings:
        if (
            each.kind in (kinds.FORBIDDEN, kinds.UNREADABLE)
            or each.path in known
            or not _is_hidden(each.path)
        ):
            if each.path not in known:
                kept.append(each)
            continue
        message = f"this process may not read it: {each.message}"
        known[each.path] = each._replace(
            severity=Severity.ERROR,
            kind=kinds.UNREADABLE,
            message=message,
            own_effect=Effect.UNKNOWN,
            own_action=None,
        )
        kept.append(known[each.path])
    return kept


def _is_hidden(path: str) -> bool:
    """Whether a file or directory may be there, and this process may not read it."""
    if is_remote(path):
        return False
    try:
        os.stat(path)  # noqa: PTH116 - kept as text
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return not os.access(path, os.R_OK)
