"""What a command that changes something prints when it is done."""

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


def write_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
