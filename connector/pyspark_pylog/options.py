"""The options of ``spark.read.format("pylog")``: names and meanings of Spark's ``kafka`` source.

Keys are case-insensitive, values are strings. An unknown option is an error, since a typo must not
change a result; what the ``kafka`` source knows and has no meaning here is accepted with one
warning, so that a job changes one word.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.inspect.table_names import RECORDS, TABLE_NAMES, unknown_table
from pylog.locations import is_remote, parse_location
from pylog.model import IsolationLevel
from pyspark_pylog.json_options import parse_json
from pyspark_pylog.position_options import parse_ending, parse_starting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_pylog.position_options import Positions

READ_OPTIONS = (
    "path",
    "paths",
    "subscribe",
    "assign",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "isolationLevel",
    "includeHeaders",
    "includeBatchMetadata",
    "columns",
    "mode",
    "table",
)

_WITHOUT_EFFECT = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
)
_OF_ANY_TABLE = frozenset(
    name.lower()
    for name in (
        "path",
        "paths",
        "subscribe",
        "assign",
        "subscribePattern",
        "columns",
        "mode",
        "table",
    )
)
"""What has a meaning also where no records are read."""

_CLIENT_PREFIX = "kafka."
_CLIENT_ISOLATION = "kafka.isolation.level"
_IN_A_CATALOG = ("owner", "provider")
"""What Spark adds to the options of a CREATE TABLE, and repeats as ``option.<name>``."""

_TEMPORARY_VIEW = (
    "A catalog table (CREATE TABLE … USING pylog) loses its options in Spark; use CREATE TEMPORARY "
    "VIEW … USING pylog OPTIONS (path '/path/to/kafka-logs') instead."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Checked options of one ``load()``.

    Attributes
    ----------
    paths
        Absolute local directories, or URIs of remote ones.
    subscribe, assign, subscribe_pattern
        Which topics or partitions; at most one is not None.
    starting, ending
        Positions, see `pyspark_pylog.position_options`.
    columns
        Projection by name; None for all.
    table
        "records", or the name of a metadata table.
    without_effect
        Names of options that are known and have no meaning here, sorted.
    """

    paths: tuple[str, ...]
    subscribe: tuple[str, ...] | None = None
    assign: Mapping[str, tuple[int, ...]] | None = None
    subscribe_pattern: str | None = None
    starting: Positions = "earliest"
    ending: Positions = "latest"
    fail_on_data_loss: bool = True
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    include_headers: bool = False
    include_batch_metadata: bool = False
    columns: tuple[str, ...] | None = None
    table: str = RECORDS
    without_effect: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> ReadOptions:
        """Return the options that ``given`` means.

        Raises
        ------
        ValueError
            An option is unknown, contradicts another one, or its value makes no sense; the text
            names the option and what it takes.
        """
        lower = {name.lower(): value for name, value in given.items()}
        without_effect = _check_names(lower)
        ways = ("subscribe", "assign", "subscribePattern")
        chosen = [name for name in ways if name.lower() in lower]
        if len(chosen) > 1:
            msg = f"give only one of the options {' and '.join(chosen)}"
            raise ValueError(msg)
        mode = lower.get("mode", "FAILFAST").strip().upper()
        if mode != "FAILFAST":
            msg = f"option mode is {lower['mode']!r}; this version knows FAILFAST"
            raise ValueError(msg)
        return cls(
            paths=_paths(lower),
            subscribe=_subscribe(lower.get("subscribe")),
            assign=_assign(lower.get("assign")),
            subscribe_pattern=_pattern(lower.get("subscribepattern")),
            starting=parse_starting(lower),
            ending=parse_ending(lower),
            fail_on_data_loss=_boolean(lower, "failOnDataLoss", default=True),
            isolation=_isolation(lower),
            include_headers=_boolean(lower, "includeHeaders", default=False),
            include_batch_metadata=_boolean(lower, "includeBatchMetadata", default=False),
            columns=_names(lower.get("columns"), "columns"),
            table=_table(lower),
            without_effect=without_effect,
        )


def _check_names(lower: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that have no effect; `ValueError` for one that is not known."""
    known = {name.lower(): name for name in (*READ_OPTIONS, _CLIENT_ISOLATION)}
    without_effect = {name.lower(): name for name in _WITHOUT_EFFECT}
    ignored = []
    for name in lower:
        if name in known:
            continue
        # The one client property that changes a result: what is nearly its name is a typo.
        typo = difflib.get_close_matches(name, [_CLIENT_ISOLATION], cutoff=0.9)
        if name in without_effect or (name.startswith(_CLIENT_PREFIX) and not typo):
            ignored.append(without_effect.get(name, name))
            continue
        if name in _IN_A_CATALOG or name.startswith("option."):
            raise ValueError(_TEMPORARY_VIEW)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; did you mean {known[near[0]]!r}?" if near else "."
        msg = f"unknown option {name!r}{hint} The options are: {', '.join(READ_OPTIONS)}"
        raise ValueError(msg)
    return tuple(sorted(ignored))


def _paths(lower: Mapping[str, str]) -> tuple[str, ...]:
    texts: list[str] = []
    if "path" in lower:
        texts.append(lower["path"])
    if "paths" in lower:
        listed = parse_json(lower["paths"], "paths", '["/a","/b"]')
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            msg = f"option paths is {lower['paths']!r}, expected a JSON list of strings"
            raise ValueError(msg)
        texts += listed
    if not texts:
        msg = f'no path: say load("/path/to/kafka-logs"). {_TEMPORARY_VIEW}'
        raise ValueError(msg)
    return tuple(_location(text) for text in texts)


def _location(text: str) -> str:
    location = parse_location(text)
    # Against the driver's working directory, which an executor does not share.
    return location if is_remote(location) else os.path.abspath(location)  # noqa: PTH100 - Path.resolve would follow links


def _names(text: str | None, option: str) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        msg = f"option {option} is {text!r}, expected names separated by commas"
        raise ValueError(msg)
    return names


def _table(lower: Mapping[str, str]) -> str:
    """Return the table's name; `ValueError` if it is none, or an option is for records alone."""
    table = lower.get("table", RECORDS).strip().lower()
    known = (RECORDS, *TABLE_NAMES)
    if table not in known:
        msg = f"option table: {unknown_table(table, known)}"
        raise ValueError(msg)
    spelled = {name.lower(): name for name in (*READ_OPTIONS, _CLIENT_ISOLATION)}
    of_records = [spelled[name] for name in lower if name in spelled.keys() - _OF_ANY_TABLE]
    if table != RECORDS and of_records:
        msg = (
            f"table {table!r} is about whole logs and takes no option {', '.join(of_records)}; "
            "choose logs by subscribe, assign or subscribePattern, and rows by WHERE"
        )
        raise ValueError(msg)
    return table


def _subscribe(text: str | None) -> tuple[str, ...] | None:
    return _names(text, "subscribe")


def _assign(text: str | None) -> dict[str, tuple[int, ...]] | None:
    if text is None:
        return None
    example = '{"topicA":[0,1],"topicB":[2]}'
    parsed = parse_json(text, "assign", example)
    sound = isinstance(parsed, dict) and all(
        isinstance(numbers, list) and all(type(number) is int for number in numbers)
        for numbers in parsed.values()
    )
    if not sound or not parsed:
        msg = f"option assign is {text!r}, expected JSON like {example}"
        raise ValueError(msg)
    return {topic: tuple(numbers) for topic, numbers in parsed.items()}


def _pattern(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.strip()
    if not text:
        msg = "option subscribePattern is empty, expected a regular expression"
        raise ValueError(msg)
    try:
        re.compile(text)
    except re.error as error:
        msg = f"option subscribePattern is {text!r}, no regular expression in Python: {error}"
        raise ValueError(msg) from error
    return text


def _isolation(lower: Mapping[str, str]) -> IsolationLevel:
    given = {
        _isolation_level(lower[name.lower()], name)
        for name in ("isolationLevel", _CLIENT_ISOLATION)
        if name.lower() in lower
    }
    if len(given) > 1:
        msg = f"options isolationLevel and {_CLIENT_ISOLATION} contradict each other"
        raise ValueError(msg)
    return next(iter(given), IsolationLevel.READ_UNCOMMITTED)


def _isolation_level(text: str, name: str) -> IsolationLevel:
    try:
        return IsolationLevel.parse(text)
    except ValueError as error:
        msg = f"option {name} is {text!r}, expected read_uncommitted or read_committed"
        raise ValueError(msg) from error


def _boolean(lower: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = lower.get(name.lower())
    if text is None:
        return default
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    msg = f"option {name} is {text!r}, expected true or false"
    raise ValueError(msg)
