"""Results of the library as JSON documents have them."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pylog.model import TopicPartition
from pylog.text.names import json_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: dict[str, str | None] = {"size_bytes": "sizeInBytes"}


def document_of(value: Any, names: Mapping[str, str | None] = MappingProxyType({})) -> Any:  # noqa: ANN401
    """Return a value of the library as JSON has it: its attributes, in camel case.

    Parameters
    ----------
    value
        A result, or what one holds: lists and dicts of results, numbers, text.
    names
        What attributes are called otherwise; None of one that is left out.

    Examples
    --------
    >>> held_back = pylog.results.HeldBack(3, 9, 5, 4, 20, 4)
    >>> pylog.jobs.document_of(held_back, {"records": "kept", "checkpoint": None})
    {'startOffset': 3, 'endOffset': 9, 'kept': 5, 'highWatermark': 4, 'logEndOffset': 20}
    """
    if isinstance(value, dict):
        return {name: document_of(each, names) for name, each in value.items()}
    attributes = getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", None)
    if attributes is None:
        if isinstance(value, (list, tuple)):
            return [document_of(each, names) for each in value]
        return str(value) if isinstance(value, (StrEnum, Exception)) else value
    document: dict[str, Any] = {}
    for name in attributes:
        each = getattr(value, name)
        key = (_NAMES | dict(names)).get(name, json_name(name))
        if isinstance(each, TopicPartition):
            document |= each._asdict()
        elif key is not None:
            document[key] = document_of(each, names)
    return document
