"""How far a query is behind, from the shapes that its progress comes in."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_pylog import lag
from pyspark_pylog.stream_offset import INITIAL

END = {"$pylog": {"version": 1}, "orders": {"0": 8, "1": 3}}
LATEST = {"orders": {"0": 10, "1": 3, "2": 4}, "payments": {"0": 0}}
BEHIND = {("orders", 0): 2, ("orders", 1): 0, ("orders", 2): 4, ("payments", 0): 0}


def source(end: object, latest: object) -> dict[str, object]:
    return {"description": "…", "endOffset": end, "latestOffset": latest}


@pytest.mark.parametrize(
    "progress",
    [
        {"sources": [source(END, LATEST)]},
        {"sources": [source(json.dumps(END), json.dumps(LATEST))]},
        SimpleNamespace(sources=[SimpleNamespace(**source(json.dumps(END), json.dumps(LATEST)))]),
        {"sources": [source({"t": {"0": 1}}, {"t": {"0": 9}}), source(END, LATEST)]},
        {"sources": [source(7, None), source(END, LATEST)]},
    ],
    ids=["JSON", "text", "objects", "beside kafka", "beside another source"],
)
def test_the_lag_is_what_the_latest_offsets_are_ahead(progress: Any) -> None:  # noqa: ANN401
    assert lag(progress) == BEHIND


def test_what_was_read_since_the_latest_offsets_were_asked_for_is_no_lag() -> None:
    ahead = source({**END, "orders": {"0": 12}}, {"orders": {"0": 10}})
    assert lag({"sources": [ahead]}) == {("orders", 0): 0}


def test_there_is_none_before_the_first_trigger() -> None:
    assert lag(None) is None


@pytest.mark.parametrize("sources", [[], [source({"t": {"0": 1}}, None)], [source(INITIAL, None)]])
def test_a_query_that_does_not_read_from_here_is_refused(sources: list[object]) -> None:
    with pytest.raises(ValueError, match="the progress has no source of format"):
        lag({"sources": sources})


@pytest.mark.parametrize("latest", [None, "null"])
def test_a_spark_that_does_not_ask_for_the_latest_offsets_is_named(latest: object) -> None:
    with pytest.raises(ValueError, match=r"from version 4\.2 on"):
        lag({"sources": [source(END, latest)]})
