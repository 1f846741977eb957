from __future__ import annotations

import json

import pytest

from pylog.writing.record_line import parse_json_line, parse_text_line
from pylog.writing.record_rows import RecordRow


def test_a_line_of_cat_is_read_in_full() -> None:
    line = (
        b'{"topic":"orders","partition":3,"offset":17,"timestamp":1700000000123,"timestampType":0,'
        b'"leaderEpoch":5,"key":"azE=","value":"AP8=","headers":[["a","MQ=="],["a",null],'
        b'["\\u00e9",""]]}'
    )
    found = parse_json_line(line, "base64")
    assert found is not None
    assert (found.topic, found.partition) == ("orders", 3)
    headers = (("a", b"1"), ("a", None), ("é", b""))
    assert found.row == RecordRow(b"k1", b"\x00\xff", 1_700_000_000_123, headers)


def test_only_the_value_must_be_there() -> None:
    found = parse_json_line(b'{"value":null}\r')
    assert found is not None
    assert found == (None, None, RecordRow(None, None, None, ()))


def test_values_may_be_text() -> None:
    line = (
        '{"values":"text","key":"abcd","value":{"base64":"/w=="},'
        '"headers":[["h","é"],["n",null],["b",{"base64":""}]]}'
    )
    found = parse_json_line(line.encode())
    assert found is not None
    headers = (("h", "é".encode()), ("n", None), ("b", b""))
    assert found.row == RecordRow(b"abcd", b"\xff", None, headers)


def test_values_may_be_said_to_be_base64() -> None:
    found = parse_json_line(b'{"values":"base64","value":"YQ=="}')
    assert found is not None
    assert found.row.value == b"a"


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_a_blank_json_line_is_not_a_record(line: bytes) -> None:
    assert parse_json_line(line) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"value":', "not JSON: Expecting value at column 10"),
        (b"key\tvalue", "column 1; if it is a key, a tab and a value, give --format text"),
        (b'{"value":"\xff"}', "byte 11 is not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b"[]", "not a JSON object, but a list"),
        (b"null", "not a JSON object, but null"),
        (b'{"value":null,"Key":null}', "unknown key Key; those of a record are headers, key,"),
        (b"{}", "key value is missing"),
        (b'{"value":1}', "value is a number, expected base64 or null"),
        (b'{"value":"YQ"}', "value is not base64"),
        (b'{"value":"Y Q=="}', "value is not base64"),
        ('{"value":"é"}'.encode(), "value is not base64"),
        (b'{"value":null,"key":[]}', "key is a list, expected base64 or null"),
        (b'{"value":null,"topic":1}', "topic is a number, expected text"),
        (b'{"value":null,"partition":-1}', "partition is -1, expected 0 to 2147483647"),
        (b'{"value":null,"partition":true}', "partition is True, expected 0 to"),
        (b'{"value":null,"timestamp":-2}', "timestamp is -2, expected -1 to 9223372036854775807"),
        (b'{"value":null,"timestamp":9223372036854775808}', "timestamp is 9223372036854775808"),
        (b'{"value":null,"timestamp":1.5}', "timestamp is 1.5"),
        (b'{"value":null,"timestamp":"1"}', "timestamp is text"),
        (b'{"value":null,"headers":{}}', "headers are an object, expected a list"),
        (b'{"value":null,"headers":[["a"]]}', 'a header is ["a"], expected [name, value]'),
        (b'{"value":null,"headers":[[1,null]]}', "a header is [1, null]"),
        (b'{"values":"hex","value":null}', 'values is "hex", expected text or base64'),
        (b'{"values":[],"value":null}', "values is [], expected text or base64"),
        (b'{"values":"text","value":1}', 'value is a number, expected text, {"base64": ...} or'),
        (b'{"values":"text","value":{"base":""}}', "value is an object, expected text"),
        (b'{"values":"text","value":{"base64":"?"}}', "value is not base64"),
        (b'{"values":"text","value":"\\ud800"}', "value has half of a surrogate pair"),
        (b'{"value":{"base64":""}}', "value is an object, expected base64 or null"),
        (b'{"value":null,"headers":[["a","?"]]}', "a header's value is not base64"),
        (b'{"value":null,"headers":[["\\ud800",null]]}', "half of a surrogate pair"),
    ],
)
def test_a_malformed_json_line_says_what_is_wrong(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_json_line(line, "base64")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (b"k\tv", b"k", b"v"),
        (b"\t", b"", b""),
        (rb"\N" + b"\t" + rb"\N", None, None),
        (b"k\ta\tb", b"k", b"a\tb"),
        (rb"\\N" + b"\t" + rb"a\tb\nc\rd\\e", rb"\N", b"a\tb\nc\rd\\e"),
        (b"k\t" + rb"\x1b\xfF\u2028\u0085", b"k", b"\x1b\xff\xe2\x80\xa8\xc2\x85"),
        ("ä\tö".encode(), "ä".encode(), "ö".encode()),
        (b"\xff\tv", b"\xff", b"v"),
    ],
)
def test_a_text_line_is_key_tab_value(line: bytes, key: bytes | None, value: bytes | None) -> None:
    found = parse_text_line(line)
    assert found == (None, None, RecordRow(key, value))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"no tab", "no tab between key and value"),
        (b"", "no tab between key and value"),
        (b"k\t" + rb"C:\dir", r"escape at '\\dir'"),
        (b"k\t" + rb"\x1", r"escape at '\\x1'"),
        (b"k\t" + rb"\ud800", r"escape at '\\ud800'"),
        (b"k\t" + rb"a\N", r"escape at '\\N'"),
        (b"k\t" + b"end\\", r"escape at '\\'"),
    ],
)
def test_a_malformed_text_line_says_what_is_wrong(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_text_line(line)
    assert reason in str(caught.value)


def test_keys_of_json_may_come_in_any_order_and_repeat_as_json_allows() -> None:
    found = parse_json_line(json.dumps({"headers": None, "value": "", "key": ""}).encode())
    assert found is not None
    assert found.row == RecordRow(b"", b"")
