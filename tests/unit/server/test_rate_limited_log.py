"""Log lines that clients cause: a few a minute, and a count."""

from __future__ import annotations

import logging

from pylog.server.rate_limited_log import RateLimit


def test_a_flood_of_lines_becomes_a_few_and_a_count() -> None:
    now = 100.0
    limit = RateLimit(lambda: now)

    def written(message: str, count: int) -> list[str]:
        records = [logging.makeLogRecord({"msg": message, "args": ("me",)}) for _ in range(count)]
        return [each.getMessage() for each in records if limit.filter(each)]

    assert written("refused %s", 9) == ["refused me"] * 9
    assert written("refused %s", 500) == [
        "refused me (more like this are counted, and not written for a minute)"
    ]
    assert written("closed %s", 1) == ["closed me"]  # of another kind
    now += 59
    assert written("refused %s", 1) == []
    now += 1
    assert written("refused %s", 2) == [
        "refused me (500 more like this were left out before)",
        "refused me",
    ]


def test_a_server_that_is_started_begins_anew() -> None:
    limit = RateLimit(lambda: 100.0)

    def passes() -> int:
        records = [logging.makeLogRecord({"msg": "refused"}) for _ in range(20)]
        return sum(map(limit.filter, records))

    assert (passes(), passes()) == (10, 0)
    limit.reset()
    assert passes() == 10
