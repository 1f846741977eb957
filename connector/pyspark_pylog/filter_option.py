"""A conjunction of predicates as the value of an option, from `pyspark_pylog.table` to the reader.

JSON with the fields of `pylog.RecordFilter`; keys in base64. Users write predicates, not this.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from pylog import RecordFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD_FILTER = "recordFilter"
_SETS = {"topics": str, "partitions": int, "keys": str}
_NUMBERS = ("min_offset", "max_offset", "min_timestamp", "max_timestamp")


def parse_record_filter(text: str | None) -> RecordFilter | None:
    """Return the filter that ``text`` stands for; None if the option is not given.

    Raises
    ------
    ValueError
        It is not what `format_record_filter` makes.
    """
    if text is None:
        return None
    try:
        stored = json.loads(text)
        _check_types([stored], dict)
        fields: dict[str, Any] = {name: stored.pop(name) for name in _NUMBERS if name in stored}
        _check_types(fields.values(), int)
        for name, kind in _SETS.items():
            if name in stored:
                values = stored.pop(name)
                _check_types([values], list)
                _check_types(values, kind)
                decode = _key if name == "keys" else _unchanged
                fields[name] = frozenset(map(decode, values))
    except (ValueError, AttributeError, TypeError) as error:
        msg = f"option {RECORD_FILTER} is {text!r}, expected what pyspark_pylog.table makes"
        raise ValueError(msg) from error
    if stored:
        msg = f"option {RECORD_FILTER} has unknown fields {', '.join(stored)}"
        raise ValueError(msg)
    return RecordFilter(**fields)


def format_record_filter(where: RecordFilter) -> str:
    """Return the option's value for a filter; a bound on disorder is an option of its own."""
    fields: dict[str, object] = {name: getattr(where, name) for name in _NUMBERS}
    for name in _SETS:
        values = getattr(where, name)
        if name == "keys" and values is not None:
            fields[name] = [base64.b64encode(key).decode() for key in sorted(values)]
        else:
            fields[name] = None if values is None else sorted(values)
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def _check_types(values: Iterable[object], kind: type) -> None:
    for value in values:
        if type(value) is not kind:  # True is not a number
            msg = f"{value!r} is not of type {kind.__name__}"
            raise ValueError(msg)


def _key(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _unchanged(value: Any) -> Any:  # noqa: ANN401 - a name or a number
    return value
