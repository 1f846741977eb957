"""What a command prints when it is done: text for people, or a JSON document."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pylog

if TYPE_CHECKING:
    from collections.abc import Iterable


def write_summary(document: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print what was done, as JSON or as text."""
    if as_json:
        write_json(document)
    else:
        sys.stdout.writelines(f"{pylog.printable(line)}\n" for line in lines)
    sys.stdout.flush()


def write_json(document: dict[str, Any], *, is_line: bool = False) -> None:
    """Print one JSON document, as one line or with a line for each member.

    Every document of a command goes through here, and says which shape it has.
    """
    whole = {"schemaVersion": pylog.JSON_SCHEMA_VERSION, **document}
    sys.stdout.write(json.dumps(whole, indent=None if is_line else 2) + "\n")
