"""Questions that people ask: the right numbers, or an error, and never a 0 that is wrong."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.batch_parser import ParsedBatch, split_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.batches import Stored
    from tests.unit.cli.conftest import Outcome

Rows = dict[str, list["Stored"]]
_MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def stored(demo_directory: Path) -> Rows:
    """Return the records of each topic of the sample, as another parser finds them."""
    found: Rows = {"orders": [], "invoices-eu": []}
    for topic, records in found.items():
        for path in sorted((demo_directory / "intact").glob(f"{topic}-*/*.log")):
            for data in split_batches(path.read_bytes()):
                batch = ParsedBatch.of(data)
                if not batch.is_control:
                    records.extend(batch.records())
    return found


def text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def document(record: Stored) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text(record.value) or "")
    except ValueError:
        return None


def field(record: Stored, name: str) -> Any:  # noqa: ANN401 - JSON
    found = document(record)
    return found.get(name) if isinstance(found, dict) else None


QUESTIONS: dict[str, tuple[str, Callable[[Rows], object]]] = {
    "count": ("SELECT count(*) FROM orders", lambda rows: len(rows["orders"])),
    "count by status": (
        "SELECT value_json->>'$.status', count(*) FROM orders WHERE value_json.qty >= 0 GROUP BY 1",
        lambda rows: Counter(
            status for each in rows["orders"] if (status := field(each, "status")) is not None
        ),
    ),
    "one status": (
        "SELECT count(*) FROM orders WHERE value_json->>'$.status' = 'returned'",
        lambda rows: sum(field(each, "status") == "returned" for each in rows["orders"]),
    ),
    "sum of a number": (
        "SELECT sum((value_json->>'$.qty')::INT) FROM orders",
        lambda rows: sum(field(each, "qty") or 0 for each in rows["orders"]),
    ),
    "LIKE": (
        "SELECT count(*) FROM orders WHERE value_text LIKE '%GET /item%'",
        lambda rows: sum("GET /item" in (text(each.value) or "") for each in rows["orders"]),
    ),
    "key LIKE": (
        "SELECT count(*) FROM \"invoices-eu\" WHERE key_text LIKE 'user-%'",
        lambda rows: sum(
            (text(each.key) or "").startswith("user-") for each in rows["invoices-eu"]
        ),
    ),
    "tombstones": (
        "SELECT count(*) FROM records WHERE value IS NULL",
        lambda rows: sum(each.value is None for of_topic in rows.values() for each in of_topic),
    ),
    "time buckets": (
        "SELECT epoch_ms(date_trunc('minute', timestamp)), count(*) FROM records GROUP BY 1",
        lambda rows: Counter(
            each.timestamp // _MINUTE_MS * _MINUTE_MS
            for of_topic in rows.values()
            for each in of_topic
        ),
    ),
    "join of two topics": (
        'SELECT count(*) FROM orders o JOIN "invoices-eu" i ON o.key = i.key',
        lambda rows: sum(
            one.key == other.key
            for one in rows["orders"]
            for other in rows["invoices-eu"]
            if one.key is not None
        ),
    ),
    "headers": (
        """SELECT count(*) FROM "invoices-eu" WHERE 'trace-id' IN [h.key FOR h IN headers]""",
        lambda rows: sum(
            any(name == "trace-id" for name, _ in each.headers) for each in rows["invoices-eu"]
        ),
    ),
    "each topic": (
        "SELECT topic, count(*) FROM records GROUP BY ALL",
        lambda rows: Counter({topic: len(of_topic) for topic, of_topic in rows.items()}),
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_the_right_answer(
    question: str, stored: Rows, demo_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    query, answer = QUESTIONS[question]
    done = pylog_run("sql", demo_directory / "intact", query, "--csv")
    assert (done.status, done.error) == (0, "")
    rows = [line.split(",") for line in done.lines[1:]]
    expected = answer(stored)
    assert expected, "a question whose answer is 0 shows nothing"
    if isinstance(expected, Counter):
        assert {name: int(count) for name, count in rows} == {
            str(name): count for name, count in expected.items()
        }
    else:
        assert rows == [[str(expected)]]


def test_an_alias_that_duckdb_does_not_take_is_told_what_to_write(
    demo_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    query = "SELECT value_json->>'$.status' AS status FROM orders WHERE status = 'paid'"
    done = pylog_run("sql", demo_directory / "intact", query)
    assert done.status == 2
    assert "write the expression itself" in done.error
