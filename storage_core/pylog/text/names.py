"""Names as users see them: members of JSON, and the nearest keyword argument to a wrong one."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

JSON_SCHEMA_VERSION = 1
"""The first member, ``schemaVersion``, of each JSON document that a command or a job prints.

It is raised when a member goes, or gets another name, type or meaning; not when one is added.
"""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_PARTITIONS = ("partition", "partitions")


def json_name(name: str) -> str:
    """Return what JSON calls a column of a table: ``firstOffset`` for ``first_offset``.

    Parameters
    ----------
    name
        In snake_case, as columns of metadata tables and names of Python are.

    Examples
    --------
    >>> pylog.jobs.json_name("first_offset")
    'firstOffset'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def names_nearest_keyword(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Return ``function``, whose `TypeError` about an unknown keyword names the nearest known one.

    Python itself does so only from 3.13 on, and a user of Spark's options may well write
    ``topic=`` for ``topics=``.
    """
    known = [*inspect.signature(function).parameters]

    @functools.wraps(function)
    def checked(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        for name in kwargs:
            if name not in known:
                hint = _hint(name, known)
                msg = (
                    f"{function.__name__}() has no argument {name!r}{hint} "
                    f"Its arguments: {', '.join(known)}"
                )
                raise TypeError(msg)
        return function(*args, **kwargs)

    return checked


def _hint(name: str, known: list[str]) -> str:
    if name in _PARTITIONS and "assign" in known:
        return "; partitions are chosen by assign, as in assign={'orders': [0, 1]}."
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else "."
