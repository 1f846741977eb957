"""A registry that runs: a server that answers as Confluent's documentation of its API shows."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import pylog
from pylog.errors import InvalidSchemaError, NoSchemaError
from pylog.jobs import ValueFormat, WriterSchema
from pylog.reading.schema_registry_client import read_registry_at
from tests.support.registry_records import ORDER, ORDER_2
from tests.unit.reading.typed_logs import BY_HEADER, FIRST, SECOND, USER, write_values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GUID = "dac6989d-b986-4ae6-b89d-dfea3edc9d86"


def version(subject: str, number: int, schema_id: int, text: str, **more: object) -> dict[str, Any]:
    return {"subject": subject, "version": number, "id": schema_id, "schema": text, **more}


ORDERS = [version("orders-value", 1, 1, ORDER, guid=GUID), version("orders-value", 2, 2, ORDER_2)]
OLD = version("a/b", 1, 3, USER, schemaType="AVRO", references=[])


class Registry(NamedTuple):
    """A server with its answers, by path, and what it was asked."""

    host: str
    answers: dict[str, Any]
    asked: list[tuple[str, str | None]]

    @property
    def url(self) -> str:
        return f"http://{self.host}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    """Serve answers: JSON, or a status with headers; what is not there is 404."""
    answers: dict[str, Any] = {}
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            answer = answers.get(self.path, (404, {}))
            status, headers = answer if isinstance(answer, tuple) else (200, {})
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for each in headers.items():
                self.send_header(*each)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield Registry(f"127.0.0.1:{server.server_port}", answers, asked)
        server.shutdown()


def answer_all(registry: Registry, prefix: str = "") -> None:
    registry.answers[f"{prefix}/schemas"] = ORDERS
    registry.answers[f"{prefix}/schemas?deleted=true"] = [OLD, *ORDERS]


def answer_one_by_one(registry: Registry) -> None:
    for asked, subjects in (("", ["orders-value"]), ("?deleted=true", ["a/b", "orders-value"])):
        registry.answers[f"/subjects{asked}"] = subjects
        registry.answers[f"/subjects/orders-value/versions{asked}"] = [1, 2]
        registry.answers[f"/subjects/a%2Fb/versions{asked}"] = [1]
        for each in ORDERS:
            path = f"/subjects/orders-value/versions/{each['version']}{asked}"
            registry.answers[path] = each
        registry.answers[f"/subjects/a%2Fb/versions/1{asked}"] = OLD


@pytest.mark.parametrize("answer", [answer_all, answer_one_by_one])
def test_all_versions_are_known_deleted_ones_too(registry: Registry, answer: Any) -> None:  # noqa: ANN401
    answer(registry)
    found = read_registry_at(f"{registry.url}/").schemas()
    assert [(each.subject, each.version, each.id, each.deleted) for each in found] == [
        ("a/b", 1, 3, True),
        ("orders-value", 1, 1, False),
        ("orders-value", 2, 2, False),
    ]
    assert [(each.type, each.schema) for each in found] == [
        ("AVRO", USER),
        ("AVRO", ORDER),
        ("AVRO", ORDER_2),
    ]
    assert found[1].guid == GUID


def test_records_are_read_by_its_schemas(tmp_path: Path, registry: Registry) -> None:
    answer_all(registry)
    write_values(tmp_path, "orders-0", [FIRST, None, SECOND])
    scan = pylog.scan(
        tmp_path, topics="orders", value_format=ValueFormat(registry=registry.url), columns="value"
    )
    assert scan.to_table().column("value").to_pylist() == [
        {"id": 1, "note": ""},
        None,
        {"id": 2, "note": "x"},
    ]


def test_values_are_written_by_its_schemas(tmp_path: Path, registry: Registry) -> None:
    answer_all(registry)
    wanted = WriterSchema(registry=registry.url, framing="header", version=1)
    planned = pylog.jobs.plan_registration(tmp_path, "orders", {"value": wanted})
    assert planned.encoders["value"].encode({"id": 1}, is_json=True) == BY_HEADER
    assert planned.topics == frozenset()
    wanted = WriterSchema(registry=f"http://me:secret@{registry.host}", subject="other")
    with pytest.raises(NoSchemaError, match="subject other has no version") as caught:
        pylog.jobs.plan_registration(tmp_path, "orders", {"value": wanted})
    assert "secret" not in str(caught.value)


def test_user_and_password_are_sent_and_never_shown(registry: Registry) -> None:
    answer_all(registry, "/api")
    read_registry_at(f"http://user:pa%20ss@{registry.host}/api")
    assert {each for _, each in registry.asked} == {"Basic dXNlcjpwYSBzcw=="}
    registry.answers["/schemas"] = (401, {})
    with pytest.raises(InvalidSchemaError, match="asks for a user and a password") as caught:
        read_registry_at(f"http://user:pa%20ss@{registry.host}")
    assert str(caught.value).startswith(f"http://{registry.host}: status 401")
    assert "pa" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((500, {}), r"answers with status 500 \(Internal Server Error\)"),
        ((302, {"Location": "/other"}), r"answers with status 302"),
        (b"<html>", "the answer to /schemas is no JSON"),
        (b"[" * 100_000, "the answer to /schemas is no JSON"),
        ({"a": 1}, "is no list of schemas"),
        ([{"subject": "a"}], "is no list of schemas"),
        ([version("a", 1, 1, ORDER, guid="x")], "is no list of schemas"),
        ([{**ORDERS[0], "id": True}], "is no list of schemas"),
        ([version("a", 1, 1 << 40, ORDER)], "a schema cannot be read: id is a number of more"),
        ([{"subject": "a", "version": 1, "id": 1}], "a schema cannot be read: the value has no"),
        ((404, {}), r"status 404"),
    ],
)
def test_what_is_no_registry_is_an_error(registry: Registry, answer: object, message: str) -> None:
    registry.answers["/schemas"] = registry.answers["/schemas?deleted=true"] = answer
    registry.answers["/other"] = ORDERS
    with pytest.raises(InvalidSchemaError, match=message):
        read_registry_at(registry.url)
    assert "/other" not in [path for path, _ in registry.asked]


@pytest.mark.parametrize("answer", [["a"], 7, [None], {"a": "b"}])
def test_an_odd_answer_about_versions_is_an_error(registry: Registry, answer: object) -> None:
    registry.answers["/subjects"] = ["a"]
    registry.answers["/subjects/a/versions"] = answer
    with pytest.raises(InvalidSchemaError, match="does not answer as a registry does"):
        read_registry_at(registry.url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://a:secret@127.0.0.1:1", "does not answer: .*refused"),
        ("http://a:secret@127.0.0.1:x", "does not answer: nonnumeric port"),
        ("http://a:secret@[", "is no URL of a registry: Invalid IPv6"),
        ("http://", "does not answer: no host"),
    ],
)
def test_a_registry_that_does_not_answer_is_an_error(url: str, message: str) -> None:
    with pytest.raises(InvalidSchemaError, match=message) as caught:
        read_registry_at(url)
    assert "secret" not in str(caught.value)
