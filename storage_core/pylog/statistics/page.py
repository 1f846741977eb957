"""Statistics as one page: no script, no network, no file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.statistics.batches import TimeSteps, without_strays
from pylog.text.charts import (
    NONE,
    Bar,
    ChartColumn,
    Share,
    bar_chart,
    card,
    column_chart,
    duration,
    moment,
    number,
    page,
    percent,
    share_chart,
    size,
    table,
    text,
    tiles,
)
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]
    Document = Mapping[str, Any]


_MOST_PARTITIONS = 24
_MOST_SAVINGS = 8
_MOST_STEPS = 120
_CODEC_KINDS = {"none", "gzip", "snappy", "lz4", "zstd"}


def topic_section(document: Document, topic: Row) -> str:
    """Return the heading of a topic, and its charts."""

    def rows(name: str) -> list[Row]:
        return [each for each in document[name] if each["topic"] == topic["topic"]]

    cards = [
        _times(topic, rows("times")),
        _batch_sizes(topic, rows("batchSizes"), "bytes"),
        _batch_sizes(topic, rows("batchSizes"), "records"),
        _partitions(topic, rows("partitions")),
        _codecs_card(rows("codecs")) if len(rows("codecs")) > 1 else "",  # the summary names one
        _savings(topic, rows("recompression")),
        _hot_keys(rows("hotKeys")),
        _largest_records(rows("largestRecords")),
        _live(topic),
    ]
    return (
        f'<h2>{text(topic["topic"])}</h2><p class="lead">{_summary(topic, rows("codecs"))}</p>'
        f'<div class="grid">{"".join(cards)}</div>'
    )


def _summary(topic: Row, codecs: Sequence[Row]) -> str:
    parts = [
        f"{size(topic['sizeInBytes'])}, {_counted(topic['partitions'], 'partition')}, "
        + _counted(topic["segments"], "segment"),
        f"{moment(topic['minTimestamp'])} to {moment(topic['maxTimestamp'])} UTC",
    ]
    if len(codecs) == 1:
        codec = codecs[0]["codec"]
        parts.insert(1, "not compressed" if codec == "none" else f"codec {text(codec)}")
    if topic["transactionalRecords"]:
        parts.append(f"{_counted(topic['transactionalRecords'], 'record')} in transactions")
    if topic["lateBatches"]:
        parts.append(
            f"{number(topic['lateBatches'])} batches have an earlier timestamp than one before "
            f"them, by up to {duration(topic['lateByMs'])}"
        )
    if topic["futureBatches"]:
        parts.append(f"{number(topic['futureBatches'])} batches have a timestamp in the future")
    parts += [
        f"{_batches(batches)} with a timestamp that is probably in {unit}"
        for unit, batches in topic["otherTimestampUnits"].items()
    ]
    return "; ".join(parts)


def _counted(count: int, thing: str) -> str:
    return counted(count, thing, digits=",")


def _batches(count: int) -> str:
    return counted(count, "batch", "batches", digits=",")


def times_card(rows: Sequence[Row], *, untimed: str = "") -> str:
    """Return the card of traffic over time, of one topic or of several; empty without times."""
    rows, strays = without_strays(rows)
    steps = TimeSteps.of(rows, _MOST_STEPS)
    if steps is None:
        return ""
    columns = [
        ChartColumn(
            size_bytes,
            spanning,
            f"{moment(steps.start_ms + place * steps.step_ms)} UTC: {size(size_bytes)}, "
            f"{_counted(records, 'record')}",
        )
        for place, (size_bytes, spanning, records) in enumerate(
            zip(steps.size_bytes, steps.spanning_bytes, steps.records, strict=True)
        )
    ]
    middle = steps.start_ms + steps.step_ms * (len(columns) // 2)
    labels = [moment(steps.start_ms), moment(steps.end_ms)]
    if len(columns) > 2:
        labels.insert(1, moment(middle))
    note = "By the largest timestamp of each batch (UTC)."
    if any(steps.spanning_bytes):
        share = percent(sum(steps.spanning_bytes) / max(1, sum(steps.size_bytes)))
        note += f" Lighter: batches that began in an earlier interval ({share} of all)."
    if strays:
        note += f" {_far_away(strays)}"
    return card(
        f"Traffic: bytes in {_per(steps.step_ms)}",
        column_chart(columns, size(max(steps.size_bytes)), labels),
        note=note + untimed,
        wide=True,
    )


def _far_away(strays: Sequence[Row]) -> str:
    starts = [each["start"] for each in strays]
    span = " to ".join(dict.fromkeys((moment(min(starts)), moment(max(starts)))))
    return f"{size(sum(each['bytes'] for each in strays))} far away ({span}) are not drawn."


def _times(topic: Row, rows: Sequence[Row]) -> str:
    untimed = sum(each["bytes"] for each in rows if each["start"] is None)
    return times_card(rows, untimed=f" {size(untimed)} have no timestamp." if untimed else "")


def _per(step_ms: int) -> str:
    shown = duration(step_ms)
    return {"1 min": "a minute", "1 hour": "an hour", "24 hours": "a day"}.get(shown, shown)


def _batch_sizes(topic: Row, rows: Sequence[Row], measure: str) -> str:
    rows = [each for each in rows if each["measure"] == measure]
    if not rows:
        return ""
    weight, shown = ("bytes", size) if measure == "bytes" else ("records", number)
    # Ranges without a batch in between are columns, too, of no height.
    by_start = {each["start"]: each for each in rows}
    starts = [rows[0]["start"]]
    while starts[-1] < rows[-1]["start"]:
        starts.append(max(1, 2 * starts[-1]))
    columns = []
    for start in starts:
        each = by_start.get(start, {"end": max(1, 2 * start), weight: 0, "batches": 0})
        label = (
            shown(start) if each["end"] - start <= 1 else f"{shown(start)} to {shown(each['end'])}"
        )
        amount = size(each[weight]) if measure == "bytes" else _counted(each[weight], "record")
        columns.append(
            ChartColumn(each[weight], 0, f"{label}: {amount}, {_batches(each['batches'])}")
        )
    counted = topic["batches"] - (0 if measure == "bytes" else topic["uncountedBatches"])
    mean = topic[weight] / counted if counted else 0
    title = "Bytes by batch size" if measure == "bytes" else "Records by records per batch"
    step = max(1, -(-len(starts) // 6))
    labels = [shown(start) if place % step == 0 else "" for place, start in enumerate(starts)]
    highest = max(each.value for each in columns)
    return card(
        title,
        column_chart(columns, shown(highest), labels),
        note=f"Mean: {shown(mean)} a batch. Each column covers its label up to twice that value.",
    )


def _partitions(topic: Row, rows: Sequence[Row]) -> str:
    if len(rows) < 2:
        return ""
    largest = sorted(rows, key=lambda each: -each["sizeInBytes"])[:_MOST_PARTITIONS]
    bars = [
        Bar(
            str(each["partition"]),
            each["sizeInBytes"],
            f"{size(each['sizeInBytes'])} <small>{_counted(each['records'], 'record')}</small>",
            f"partition {each['partition']}: {size(each['sizeInBytes'])}",
        )
        for each in largest
    ]
    note = f"The largest has {topic['skew']:.2f} times the mean." if topic["skew"] else ""
    if len(rows) > len(bars):
        note += f" The {len(bars)} largest of {number(len(rows))}."
    return card("Size by partition", bar_chart(bars), note=note)


def _codecs_card(rows: Sequence[Row]) -> str:
    parts = []
    for each in sorted(rows, key=lambda each: -each["bytes"]):
        kind = each["codec"] if each["codec"] in _CODEC_KINDS else "other"
        tip = f"{each['codec']}: {size(each['bytes'])}, {_batches(each['batches'])}"
        parts.append(Share(each["codec"], each["bytes"], tip, kind, kind))
    return card("Bytes by codec", share_chart(parts), note="As batches are stored.")


def _savings(topic: Row, rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    sampled = f"Measured: {size(rows[0]['sampledBytes'])} of the topic were compressed again."
    in_place = sorted(
        (each for each in rows if each["batchSize"] is None), key=lambda each: each["ratio"]
    )
    others = sorted(
        (each for each in rows if each["batchSize"] is not None), key=lambda each: each["ratio"]
    )[:_MOST_SAVINGS]
    return card(
        "What another codec would take",
        _variants(topic, in_place),
        note=f"{sampled} Batches hold the same records as now.",
    ) + card(
        "What other batch sizes would take",
        _variants(topic, others),
        note=f"{sampled} Batch sizes are before compression.",
    )


def _variants(topic: Row, rows: Sequence[Row]) -> str:
    stored = topic["bytes"]
    bars = [Bar("as it is", stored, size(stored), f"{size(stored)}", kind="now")]
    for each in rows:
        change = 100 * (each["ratio"] - 1)
        shown = f"{change:+.0f}\u00a0%" if abs(change) >= 0.5 else "the same"
        kind = "good" if change <= -5 else ""
        is_bounded = each["ratioHigh"] is not None
        high = size(each["ratioHigh"] * stored) if is_bounded else "any size"
        bars.append(
            Bar(
                _variant(each),
                each["estimatedBytes"],
                f'{size(each["estimatedBytes"])} <small class="{kind}">{shown}</small>',
                f"{size(each['estimatedBytes'])}; in 95 % of samples between "
                f"{size(each['ratioLow'] * stored)} and {high}",
                low=each["ratioLow"] * stored if is_bounded else None,
                high=each["ratioHigh"] * stored if is_bounded else None,
                kind="saved" if change < -0.5 else "a",
            )
        )
    return bar_chart(bars)


def _variant(row: Row) -> str:
    level = "" if row["level"] is None else f" {row['level']}"
    batches = "" if row["batchSize"] is None else f", batches of {size(row['batchSize'])}"
    return f"{text(row['codec'])}{level}{batches}"


def _hot_keys(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    is_sampled = rows[0]["isSampled"]
    bars = []
    for each in rows:
        share = each["ofRecords"]
        bounds = f", between {percent(share['low'])} and {percent(share['high'])}"
        bars.append(
            Bar(
                f"<code>{_key(each)}</code>",
                share["share"],
                f"{percent(share['share'])} <small>{percent(each['ofBytes']['share'])} of bytes"
                "</small>",
                f"{percent(share['share'])} of records"
                + (bounds if share["low"] < share["high"] else ""),
                low=share["low"],
                high=share["high"],
            )
        )
    note = "Share of the topic's records"
    note += (
        ", by a sample; the thin line is where the truth lies in 95 % of samples."
        if is_sampled
        else ", all of which were counted."
    )
    return card("Most frequent keys", bar_chart(bars), note=note)


def _key(row: Row) -> str:
    if row["offset"] is None:
        return "(no key)"
    key = row["key"]
    if key is None:
        return "(no key, or deleted)"
    return text(f"base64:{key['base64']}" if isinstance(key, dict) else key or '""')


def _largest_records(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    how = " of a sample" if rows[0]["isSampled"] else ""
    cells = [
        (
            f"<code>{_key(each)}</code>",
            size(each["recordBytes"]),
            str(each["partition"]),
            str(each["offset"]),
            moment(each["timestamp"]),
        )
        for each in rows
    ]
    return card(
        f"Largest records{how}",
        table(("key", "size", "partition", "offset", "timestamp"), cells),
        note="Sizes are before compression.",
    )


def _live(topic: Row) -> str:
    if topic["liveBytes"] is None:
        return ""
    parts = [
        Share(kind, topic[name], f"{kind}: {size(topic[name])}", kind, colour)
        for kind, name, colour in (("live", "liveBytes", "good"), ("dead", "deadBytes", "none"))
    ]
    note = "Dead is what a compaction of the whole log would remove."
    return card("Live and dead bytes", share_chart(parts), note=note)


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
    body = "".join(
        [
            _head(document, paths),
            _problems(document["problems"]),
            _tiles(document, topics),
            _overview(document, topics),
            *(topic_section(document, topic) for topic in shown),
        ]
    )
    return page(paths, body, "pylog stats")


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
    figures = [
        (size(summary["sizeInBytes"]), "in .log files"),
        (f"{at_least}{number(summary['records'])}", "records"),
        (number(summary["partitions"]), f"partitions of {_counted(summary['topics'], 'topic')}"),
        (number(summary["segments"]), "segments"),
    ]
    if counted:
        mean = size(summary["bytes"] / summary["batches"])
        figures.append((number(summary["records"] / counted), f"records ({mean}) per batch"))
    saved = _saved_bytes(document)
    if saved > 0:
        figures.append(
            (size(saved), "could be saved with the best codec of each topic, batches as they are")
        )
    live = [each for each in topics if each["deadBytes"] is not None]
    if live:
        figures.append((size(sum(each["deadBytes"] for each in live)), "dead in compacted topics"))
    return tiles(figures)


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
    cards = [
        _topics_card(topics),
        _codecs_card(_summed_codecs(document["codecs"])),
        times_card(document["times"]),
    ]
    return f'<div class="grid">{"".join(cards)}{_topics_table(topics)}</div>'


def _topics_card(topics: Sequence[Row]) -> str:
    total = sum(each["sizeInBytes"] for each in topics) or 1
    bars = [
        Bar(
            text(each["topic"]),
            each["sizeInBytes"],
            f"{size(each['sizeInBytes'])} <small>{percent(each['sizeInBytes'] / total)}</small>",
            f"{each['topic']}: {size(each['sizeInBytes'])}, {_counted(each['records'], 'record')}",
        )
        for each in topics[:_MOST_TOPICS]
    ]
    more = len(topics) - len(bars)
    note = f"The {len(bars)} largest of {number(len(topics))}." if more > 0 else ""
    return card("Size by topic", bar_chart(bars), note=note)


def _summed_codecs(rows: Sequence[Row]) -> list[Row]:
    sums: dict[str, dict[str, Any]] = {}
    for each in rows:
        of_codec = sums.setdefault(each["codec"], {**each, "bytes": 0, "batches": 0})
        of_codec["bytes"] += each["bytes"]
        of_codec["batches"] += each["batches"]
    return list(sums.values())


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
    note = "Skew: largest partition ÷ average partition."
    if more > 0:
        note += f" {number(more)} smaller topics are left out."
    return card("All topics", table(headings, rows), note=note, wide=True)


def _mean(part: int, whole: int) -> str:
    return number(part / whole) if whole else NONE
