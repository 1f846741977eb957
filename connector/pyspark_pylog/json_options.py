"""Option values that are JSON, read strictly: what is ambiguous is refused."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str, option: str, example: str) -> Any:  # noqa: ANN401 - JSON is anything
    """Return the value of ``text``.

    Raises
    ------
    ValueError
        It is not JSON, or an object names a key twice: Python would silently keep the last one.
    """
    try:
        return json.loads(text, object_pairs_hook=_object_without_repetition)
    except (ValueError, RecursionError) as error:
        # A URI among paths may hold a password.
        given = "not JSON" if option == "paths" else repr(text)
        msg = f"option {option} is {given}, expected JSON like {example}: {error}"
        raise ValueError(msg) from error


def _object_without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        msg = f"{twice!r} is named twice"
        raise ValueError(msg)
    return by_name
