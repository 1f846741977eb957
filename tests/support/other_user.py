"""Doing something as another user: in a child of this process, which has to be root's."""

from __future__ import annotations

import os
import pickle
import traceback
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class OtherUserError(AssertionError):
    """What the child has raised."""


class _Failed(NamedTuple):
    text: str


def as_user(uid: int, do: Callable[[], object]) -> object:
    """Return what a function returns that runs as a user, in the group of the same number.

    Modules have to be imported before: the user may not be able to read them.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            result = do()
        except BaseException:  # noqa: BLE001 - the parent raises it
            result = _Failed(traceback.format_exc())
        with os.fdopen(write_end, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        result = pickle.load(pipe)  # noqa: S301 - this process has written it
    os.waitpid(child, 0)
    if isinstance(result, _Failed):
        raise OtherUserError(result.text)
    return result
