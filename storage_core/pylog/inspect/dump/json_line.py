"""A JSON object on a line of its own, written as the kernel writes the others: without blanks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def json_line(fields: Mapping[str, object]) -> str:
    """Return the object, in ASCII, with its line break."""
    return json.dumps(fields, separators=(",", ":")) + "\n"
