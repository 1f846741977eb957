"""Records of Kafka Connect's own topics: offsets of sources, configurations, status.

Values are JSON, as Connect's own converter writes it: without a schema, or, where older workers
were told so, as ``{"schema": …, "payload": …}``.

========  ==============================================  =====================================
topic     key                                             value
========  ==============================================  =====================================
offsets   JSON: the connector's name, and what it reads   JSON: where it is in that
configs   ``connector-<name>``, ``task-<name>-<number>``  ``properties``
          ``commit-<name>``                               ``tasks``: how many belong together
          ``target-state-<name>``                         ``state``: STARTED, PAUSED, STOPPED
          ``tasks-fencing-<name>``                        ``task-count``
          ``restart-connector-<name>``                    ``include-tasks``, ``only-failed``
          ``session-key``                                 ``key``, which signs requests of workers
          ``logger-cluster-<logger>``                     ``level``
status    ``status-connector-<name>``,                    ``state``, ``worker_id``,
          ``status-task-<name>-<number>``                 ``generation``, ``trace``
          ``status-topic-<topic>:connector-<name>``       ``topic``: an object with ``task`` and
                                                          ``discoverTimestamp`` in ms
========  ==============================================  =====================================

Source: OffsetUtils, KafkaOffsetBackingStore, KafkaConfigBackingStore, KafkaStatusBackingStore
(Kafka 4.4); KIP-158, KIP-507, KIP-618, KIP-745, KIP-875, KIP-976.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple, NoReturn

from pylog.errors import InvalidRecordError

OFFSETS = re.compile(r"(?!mm2-offset-syncs).*(?:connect|mm2).*[-._]offsets?(?:[-._].+)?")
CONFIGS = re.compile(r".*(?:connect|mm2).*[-._]configs?(?:[-._].+)?")
STATUSES = re.compile(r".*(?:connect|mm2).*[-._]status(?:es)?(?:[-._].+)?")
"""The topics, by the names that they usually have: those of a cluster are in its configuration."""

_NAMED = (
    *("connector-", "commit-", "target-state-"),
    *("tasks-fencing-", "restart-connector-", "logger-cluster-"),
)
_HIDDEN = "[hidden]"


class ConnectOffset(NamedTuple):
    """Where a source connector is in something that it reads; both are JSON."""

    connector: str
    source_partition: str
    source_offset: str | None


class ConnectConfig(NamedTuple):
    """A configuration: ``name`` is that of the connector, or of a logger; ``config`` is JSON."""

    kind: str
    name: str | None
    task: int | None
    config: str | None


class ConnectStatus(NamedTuple):
    """The status of a connector or a task; or a topic that a connector uses, found by a task."""

    kind: str
    connector: str
    task: int | None
    used_topic: str | None = None
    state: str | None = None
    worker_id: str | None = None
    generation: int | None = None
    trace: str | None = None
    discovered_ms: int | None = None


def read_offset(key: bytes | None, value: bytes | None) -> ConnectOffset:
    """Return a record of the topic of offsets.

    Raises
    ------
    InvalidRecordError
        It is no such record.
    """
    found = _payload(_document(key, "key"))
    if not (isinstance(found, list) and [type(each) for each in found] == [str, dict]):
        _refuse("offset", "its key is no list of the connector's name and an object")
    connector, partition = found
    return ConnectOffset(connector, _json(partition), _optional_json(_fields(value, "offset")))


def read_config(key: bytes | None, value: bytes | None) -> ConnectConfig:
    """Return a record of the topic of configurations; see `read_offset`."""
    text = _text(key, "key")
    fields = _fields(value, "configuration")
    if text == "session-key":
        if fields is not None and "key" in fields:
            fields = {**fields, "key": _HIDDEN}
        return ConnectConfig(text, None, None, _optional_json(fields))
    if text.startswith("task-"):
        name, number = _task(text, "task-", "configuration")
        return ConnectConfig("task", name, number, _optional_json(fields))
    prefix = next(filter(text.startswith, _NAMED), None)
    if prefix is None:
        _refuse("configuration", f"its key is {text!r}")
    name, kind = text.removeprefix(prefix), prefix.removesuffix("-")
    return ConnectConfig(kind, name, None, _optional_json(fields))


def read_status(key: bytes | None, value: bytes | None) -> ConnectStatus:
    """Return a record of the topic of status; see `read_offset`."""
    text = _text(key, "key")
    fields = _fields(value, "status") or {}
    if text.startswith("status-topic-"):
        topic, _, connector = text.removeprefix("status-topic-").partition(":connector-")
        if not topic or not connector:
            _refuse("status", f"its key is {text!r}")
        inner = fields.get("topic", {})
        if not isinstance(inner, dict):
            _refuse("status", "its topic is no object")
        found = _Fields(inner, "status")
        task, since = found.integer("task"), found.integer("discoverTimestamp")
        return ConnectStatus("topic", connector, task, topic, discovered_ms=since)
    task = None
    if text.startswith("status-connector-"):
        kind, connector = "connector", text.removeprefix("status-connector-")
    elif text.startswith("status-task-"):
        kind = "task"
        connector, task = _task(text, "status-task-", "status")
    else:
        _refuse("status", f"its key is {text!r}")
    found = _Fields(fields, "status")
    return ConnectStatus(
        kind,
        connector,
        task,
        state=found.text("state"),
        worker_id=found.text("worker_id"),
        generation=found.integer("generation"),
        trace=found.text("trace"),
    )


class _Fields(NamedTuple):
    """An object of JSON, whose fields have to be of some types; a tombstone has none."""

    fields: dict[str, Any]
    what: str

    def text(self, name: str) -> str | None:
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            _refuse(self.what, f"its {name} is no text")
        return value

    def integer(self, name: str) -> int | None:
        value = self.fields.get(name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (is_number and -(2**63) <= value < 2**63):
            _refuse(self.what, f"its {name} is no integer of 64 bits")
        return value


class ConnectDecoder:
    """Makes JSON of keys and values; a key that is no JSON is a text, a tombstone ``<DELETE>``."""

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the texts of a record; see `DumpDecoder`."""
        key_text = None
        if key is not None:
            key_text = _text(key, "key")
            if key_text.startswith("["):
                key_text = _line(key_text, "key")
        return key_text, "<DELETE>" if value is None else _line(_text(value, "value"), "value")


def _line(text: str, part: str) -> str:
    """Return a document as it lies, or, if that has several lines, in one."""
    found = _parsed(text, part)
    return text if text.isprintable() else json.dumps(found, separators=(",", ":"))


def _task(text: str, prefix: str, what: str) -> tuple[str, int]:
    name, _, number = text.removeprefix(prefix).rpartition("-")
    if not name or not (number.isascii() and number.isdecimal() and int(number) < 2**31):
        _refuse(what, f"its key is {text!r}, which names no task")
    return name, int(number)


def _fields(value: bytes | None, what: str) -> dict[str, Any] | None:
    if value is None:
        return None
    found = _payload(_document(value, "value"))
    if not isinstance(found, dict):
        _refuse(what, "its value is no object")
    return found


def _payload(found: object) -> object:
    """Take off the envelope of a converter that writes schemas."""
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        schema = found["schema"]
        if schema is None or (isinstance(schema, dict) and "type" in schema):
            return found["payload"]
    return found


def _document(data: bytes | None, part: str) -> object:
    return _parsed(_text(data, part), part)


def _parsed(text: str, part: str) -> object:
    try:
        return json.loads(text, parse_float=_number, parse_constant=_number)
    except RecursionError:
        reason = f"the {part} of a record of Kafka Connect is JSON that is nested too deeply"
        raise InvalidRecordError(reason) from None
    except ValueError as error:
        reason = f"the {part} of a record of Kafka Connect is no JSON: {error}"
        raise InvalidRecordError(reason) from None


def _number(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"{text} is no number")
    return found


def _text(data: bytes | None, part: str) -> str:
    if data is None:
        raise InvalidRecordError(f"the {part} of a record of Kafka Connect is null")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        reason = f"the {part} of a record of Kafka Connect is not UTF-8: {error}"
        raise InvalidRecordError(reason) from None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _optional_json(value: object) -> str | None:
    return None if value is None else _json(value)


def _refuse(what: str, reason: str) -> NoReturn:
    raise InvalidRecordError(f"a record is no {what} of Kafka Connect: {reason}")
