"""Statistics as one page: no script, no network, no file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.inspect.statistics.html_parts import (
    NONE,
    Bar,
    bar_chart,
    card,
    moment,
    number,
    percent,
    size,
    table,
    text,
)
from pylog.inspect.statistics.page_style import PAGE_STYLE
from pylog.inspect.statistics.topic_page import codec_share, times_card, topic_section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]
    Document = Mapping[str, Any]

_MOST_TOPICS = 12
_MOST_ROWS = 500
_MOST_PROBLEMS = 20
_MOST_OF_A_PROBLEM = 2000  # characters: the cause comes last, after the names of topic and file
_HOW = {
    "headers": "every batch header was read, and no record",
    "sample": "every batch header was read, and a sample of the records",
    "all": "every batch header and every record was read",
}


def statistics_page(document: Document) -> str:
    """Return the whole page for a document of `LogStatistics`."""
    topics = sorted(document["topics"], key=lambda each: -each["sizeInBytes"])
    shown = [each for each in topics if each["batches"]][:_MOST_TOPICS]
    paths = ", ".join(text(path) for path in document["paths"])
    title = f"{paths} · pylog stats"
    body = "".join(
        [
            _head(document, paths),
            _problems(document["problems"]),
            _tiles(document, topics),
            _overview(document, topics),
            *(topic_section(document, topic) for topic in shown),
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{PAGE_STYLE}</style></head>"
        f"<body><main>{body}{_foot()}</main></body></html>\n"
    )


def _head(document: Document, paths: str) -> str:
    how = _HOW[document["read"]]
    if document["sampledBytes"]:
        how += f" ({size(document['sampledBytes'])} sampled)"
    when = moment(document["now"])
    return (
        f'<header><h1>What these Kafka logs are made of</h1><p class="lead"><code>{paths}</code>'
        f'</p><p class="lead">{when} UTC; {how}</p></header>'
    )


def _problems(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    lines = "".join(
        f"<li>{text(each, _MOST_OF_A_PROBLEM)}</li>" for each in problems[:_MOST_PROBLEMS]
    )
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        lines += f"<li>and {number(more)} more</li>"
    return (
        '<div class="problems"><b>Some of it could not be read, and is not counted</b>'
        f"<ul>{lines}</ul></div>"
    )


def _tiles(document: Document, topics: Sequence[Row]) -> str:
    summary = document["summary"]
    at_least = "≥ " if summary["uncountedBatches"] else ""
    counted = summary["batches"] - summary["uncountedBatches"]
    tiles = [
        (size(summary["sizeInBytes"]), "in .log files"),
        (f"{at_least}{number(summary['records'])}", "records"),
        (number(summary["partitions"]), f"partitions of {number(summary['topics'])} topics"),
        (number(summary["segments"]), "segments"),
    ]
    if counted:
        mean = size(summary["bytes"] / summary["batches"])
        tiles.append((number(summary["records"] / counted), f"records per batch, which has {mean}"))
    saved = _saved_bytes(document)
    if saved > 0:
        tiles.append(
            (size(saved), "could be saved with the best codec of each topic, batches as they are")
        )
    live = [each for each in topics if each["deadBytes"] is not None]
    if live:
        tiles.append((size(sum(each["deadBytes"] for each in live)), "dead in compacted topics"))
    shown = "".join(
        f'<div class="tile"><b>{value}</b><span>{what}</span></div>' for value, what in tiles
    )
    return f'<div class="tiles">{shown}</div>'


def _saved_bytes(document: Document) -> int:
    """Return what the best variant of each topic would save, batches as they are."""
    best: dict[str, int] = {}
    stored = {each["topic"]: each["bytes"] for each in document["topics"]}
    for each in document["recompression"]:
        if each["batchSize"] is None:
            saved = stored[each["topic"]] - each["estimatedBytes"]
            best[each["topic"]] = max(best.get(each["topic"], 0), saved)
    return sum(best.values())


def _overview(document: Document, topics: Sequence[Row]) -> str:
    cards = [_topics_card(topics), _codecs_card(document), times_card(document["times"])]
    return f'<div class="grid">{"".join(cards)}{_topics_table(topics)}</div>'


def _topics_card(topics: Sequence[Row]) -> str:
    total = sum(each["sizeInBytes"] for each in topics) or 1
    bars = [
        Bar(
            text(each["topic"]),
            each["sizeInBytes"],
            f"{size(each['sizeInBytes'])} <small>{percent(each['sizeInBytes'] / total)}</small>",
            f"{each['topic']}: {each['sizeInBytes']:,} bytes, {each['records']:,} records",
        )
        for each in topics[:_MOST_TOPICS]
    ]
    more = len(topics) - len(bars)
    note = f"The {len(bars)} largest of {number(len(topics))}." if more > 0 else ""
    return card("Size by topic", bar_chart(bars), note=note)


def _codecs_card(document: Document) -> str:
    sums: dict[str, dict[str, int]] = {}
    for each in document["codecs"]:
        of_codec = sums.setdefault(each["codec"], {"bytes": 0, "batches": 0})
        of_codec["bytes"] += each["bytes"]
        of_codec["batches"] += each["batches"]
    rows = [{"codec": codec, **each} for codec, each in sums.items()]
    return card("Bytes by codec", codec_share(rows), note="As batches are stored.")


def _topics_table(topics: Sequence[Row]) -> str:
    headings = (
        *("topic", "partitions", "size", "records", "batches", "records a batch"),
        *("bytes a batch", "skew", "oldest", "newest"),
    )
    rows = [
        (
            text(each["topic"]),
            number(each["partitions"]),
            size(each["sizeInBytes"]),
            ("≥ " if each["uncountedBatches"] else "") + number(each["records"]),
            number(each["batches"]),
            _mean(each["records"], each["batches"] - each["uncountedBatches"]),
            _mean(each["bytes"], each["batches"]),
            NONE if each["skew"] is None else f"{each['skew']:.2f}",
            moment(each["minTimestamp"]),
            moment(each["maxTimestamp"]),
        )
        for each in topics[:_MOST_ROWS]
    ]
    more = len(topics) - len(rows)
    note = "Skew: the largest partition by the mean one."
    if more > 0:
        note += f" {number(more)} smaller topics are left out."
    return card("All topics", table(headings, rows), note=note, wide=True)


def _mean(part: int, whole: int) -> str:
    return number(part / whole) if whole else NONE


def _foot() -> str:
    return (
        "<footer>Made by <code>pylog stats</code>. This page needs no network and loads nothing."
        "</footer>"
    )
