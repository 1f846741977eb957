"""How tests talk to clients in other languages."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.foreign_clients import ForeignClientError, ForeignReader
from tests.support.served_clients import Wanted

WANTED = Wanted("orders", 0, 0, 2)
PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["address"] == "end":
        sys.exit()
    if asked["address"] == "hang":
        import time; time.sleep(60)
    print(json.dumps({"offset": asked["start"], "committed": asked["committed"]}))
    print(json.dumps({"error": "" if asked["address"] == "good" else "no such topic"}), flush=True)
"""


def test_records_are_kept_up_to_an_error_and_a_client_that_ended_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ForeignReader([sys.executable, "-c", PROGRAM]) as reader:
        for address, expected in (
            ("good", None),
            ("bad", ForeignClientError),
            ("end", TimeoutError),
            ("good", None),
            ("hang", TimeoutError),
        ):
            lines: list[dict[str, Any]] = []
            if expected is None:
                reader.read(address, WANTED, "read_committed", lines)
            else:
                monkeypatch.setattr(
                    "tests.support.foreign_clients._SECONDS", 2 if address == "hang" else 40
                )
                with pytest.raises(expected):
                    reader.read(address, WANTED, "read_committed", lines)
            has_answered = address in ("good", "bad")
            assert lines == ([{"offset": 0, "committed": True}] if has_answered else [])
