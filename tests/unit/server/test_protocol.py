"""Requests are counted while they are read, responses made while they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pylog.internal_topics.message_reader import Readable, TooManyElementsError
from pylog.internal_topics.message_writer import SLICE_ELEMENTS, EachOf, Writable, write_message
from pylog.server.messages import APIS
from pylog.server.protocol import read_request, response_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.internal_topics.schema import Field
    from pylog.server.protocol import Api, Response


def value_of(field: Field, version: int) -> Any:  # noqa: ANN401 - a value of a message
    """Return a short value."""
    if field.is_array:
        return []
    if field.type == "struct":
        return {each.name: value_of(each, version) for each in field.fields}
    return {"string": "", "bytes": b"", "records": b""}.get(field.type, field.default)


def arrays(fields: tuple[Field, ...], version: int) -> Iterator[tuple[Field, ...]]:
    """Yield the way to each array of a message, from the outermost to itself."""
    for field in fields:
        if version not in field.versions or field.tag is not None:
            continue
        if field.is_array:
            yield (field,)
        for inner in arrays(field.fields, version):
            yield (field, *inner)


def with_elements(way: tuple[Field, ...], version: int, count: int) -> Any:  # noqa: ANN401
    """Return the value of the first field of a way, with so many elements at its end."""
    field, *inner = way
    if not inner:
        one: Any = ""
        if field.fields:
            one = {each.name: value_of(each, version) for each in field.fields}
        elif field.type != "string":
            one = 0 if field.default in ((), None) or field.is_array else field.default
        return [one] * count
    struct = {each.name: value_of(each, version) for each in field.fields}
    struct[inner[0].name] = with_elements(tuple(inner), version, count)
    return [struct] if field.is_array else struct


def large_requests(count: int) -> Iterator[tuple[Api, int, str, bytes]]:
    """Yield a request for each array of each API, in its latest version, with so many elements."""
    for api in APIS.values():
        version = api.versions.stop - 1
        for way in arrays(api.request.fields, version):
            fields = {each.name: value_of(each, version) for each in api.request.fields}
            fields[way[0].name] = with_elements(way, version, count)
            name = ".".join(each.name for each in way)
            yield api, version, name, write_message(api.request, fields, version)


def test_each_array_of_each_request_is_counted_before_it_is_read() -> None:
    checked = 0
    for api, version, name, data in large_requests(200):
        with pytest.raises(TooManyElementsError):
            read_request(api, Readable(data, 199), version)
        readable = Readable(data, 250)
        read_request(api, readable, version)
        assert 200 <= readable.elements <= 203, (api.name, name)
        checked += 1
    assert checked > 50


def test_tagged_fields_that_nobody_knows_are_counted() -> None:
    api = APIS["ApiVersions"]
    names = b"\x02x\x02y"
    tags = bytes([120]) + b"".join(bytes([tag, 0]) for tag in range(7, 127))
    with pytest.raises(TooManyElementsError):
        read_request(api, Readable(names + tags, 119), 3)
    assert read_request(api, Readable(names + tags, 120), 3)["clientSoftwareName"] == "x"


def test_an_array_is_made_while_it_is_written_and_not_before() -> None:
    made: list[int] = []

    def group(number: int) -> Response:
        made.append(number)
        return {"groupId": str(number), "members": []}

    api = APIS["DescribeGroups"]
    writable = Writable()
    response = {"groups": EachOf(group, range(3 * SLICE_ELEMENTS))}
    slices = response_slices(writable, api, 5, 1, response)
    assert made == []
    for count in (1, 2, 3):
        next(slices)
        assert len(made) == count * SLICE_ELEMENTS
    assert next(slices, None) is None
    whole = write_message(api.response, {"groups": list(response["groups"])}, 5)
    assert bytes(writable.buffer).endswith(whole)
