"""What a user may do with a file, as its owner, group and mode say.

Root may do anything. Of others one class of bits counts alone: the owner's, else those of the
group, else the rest's. Access control lists are not looked into: where there is one, what anybody
but the owner may do is not known.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat as stat_module
from typing import NamedTuple

READ, WRITE, SEARCH = os.R_OK, os.W_OK, os.X_OK
_OWNER_SHIFT, _GROUP_SHIFT = 6, 3
_ACCESS_LIST = "system.posix_acl_access"


class DeniedError(PermissionError):
    """A user may not do something with a file; or it is not known whether he may."""

    def __init__(self, reason: str, path: str, *, is_known: bool) -> None:
        super().__init__(errno.EACCES, reason, path)
        self.is_known = is_known


class FileUser(NamedTuple):
    """A user, and the groups that he is in; None where they are not known."""

    uid: int
    gids: frozenset[int] | None

    @classmethod
    def of(cls, uid: int) -> FileUser:
        """Return the user with an id, whose groups are those that this host knows."""
        try:
            known = pwd.getpwuid(uid)
        except KeyError:
            return cls(uid, None)
        return cls(uid, frozenset(os.getgrouplist(known.pw_name, known.pw_gid)))

    @classmethod
    def named(cls, text: str) -> FileUser:
        """Return the user whose name, or id, ``text`` is."""
        if text.isascii() and text.isdecimal():
            return cls.of(int(text))
        try:
            return cls.of(pwd.getpwnam(text).pw_uid)
        except KeyError as error:
            msg = f"{text!r} is no user of this host: give the number of his id"
            raise ValueError(msg) from error

    @classmethod
    def of_process(cls) -> FileUser:
        """Return the user that this process runs as."""
        return cls(os.geteuid(), frozenset({os.getegid(), *os.getgroups()}))

    @property
    def is_root(self) -> bool:
        """Whether the user is root, to whom no file is forbidden."""
        return self.uid == 0

    def __str__(self) -> str:
        try:
            return f"{pwd.getpwuid(self.uid).pw_name} (uid {self.uid})"
        except KeyError:
            return f"uid {self.uid}"

    def may(self, status: os.stat_result, wanted: int) -> bool | None:
        """Whether a mode allows `READ`, `WRITE`, `SEARCH`; None where groups are not known."""
        if self.is_root:
            return True
        mode = stat_module.S_IMODE(status.st_mode)
        if status.st_uid == self.uid:
            return _allows(mode >> _OWNER_SHIFT, wanted)
        as_group, as_other = _allows(mode >> _GROUP_SHIFT, wanted), _allows(mode, wanted)
        if self.gids is None:
            return as_group if as_group == as_other else None
        return as_group if status.st_gid in self.gids else as_other

    def ensure_may(self, path: str, wanted: int) -> None:
        """Raise `DeniedError` unless something is known to be allowed with what lies at a path."""
        status = os.stat(path)  # noqa: PTH116 - kept as text
        allowed = self.may(status, wanted)
        if not self.is_root and status.st_uid != self.uid and _has_access_list(path):
            allowed = None
        if allowed:
            return
        verbs = [
            verb
            for bit, verb in ((READ, "read"), (WRITE, "write to"), (SEARCH, "look into"))
            if wanted & bit
        ]
        mode = f"{stat_module.S_IMODE(status.st_mode):04o}"
        owner = f"owner {status.st_uid}, group {status.st_gid}, mode {mode}"
        what = f"{' and '.join(verbs)} {path} ({owner})"
        reason = f"user {self} may not {what}"
        if allowed is None:
            reason = f"whether user {self} may {what} is not known"
        raise DeniedError(reason, path, is_known=allowed is not None)


def _allows(bits: int, wanted: int) -> bool:
    return bits & wanted == wanted


def _has_access_list(path: str) -> bool:
    try:
        os.getxattr(path, _ACCESS_LIST)
    except (OSError, AttributeError):  # there is none; macOS has no such call
        return False
    return True
