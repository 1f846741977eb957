"""Rules put something else in the place of parts of records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.columnar.record_masking import read_mask_rules
from pylog.errors import LogDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.columnar.record_masking import RecordMasking

ALL = """
[[mask]]
topics = ["users"]
json_path = ["$.email", "$.cards[*].iban"]
replace = "***"

[[mask]]
json_path = "$.age"

[[mask]]
header = ["agent"]
replace = "?"

[[mask]]
topics = ["plain"]
key = true
replace = "k"

[[mask]]
topics = ["plain"]
value = true
replace = "v"
"""


def rules(tmp_path: Path, text: str) -> RecordMasking:
    path = tmp_path / "rules.toml"
    path.write_text(text, "utf-8")
    return read_mask_rules(path)


def test_parts_of_json_are_replaced_and_the_rest_stays_as_it_is_written(tmp_path: Path) -> None:
    masking = rules(tmp_path, ALL)
    value = (
        b'{ "email":"a@b" , "age": 7,"cards":[{"iban":"DE1","n":1.0},{"iban":["x"]}], '
        b'"e":"\\u00e9" }'
    )
    _, masked, _ = masking.masked_record("users", b"k", value, ())
    assert masked == (
        b'{ "email":"***" , "age": null,"cards":[{"iban":"***","n":1.0},{"iban":"***"}], '
        b'"e":"\\u00e9" }'
    )
    _, other, _ = masking.masked_record("orders", b"k", value, ())
    assert other == value.replace(b"7", b"null")


def test_members_that_come_twice_are_all_replaced(tmp_path: Path) -> None:
    masking = rules(tmp_path, ALL)
    value = b'{"email":"first","email":"last","cards":[],"cards":[{"iban":"x"}]}'
    _, masked, _ = masking.masked_record("users", None, value, ())
    assert masked == b'{"email":"***","email":"***","cards":[],"cards":[{"iban":"***"}]}'


def test_what_is_inside_of_what_is_replaced_goes_with_it(tmp_path: Path) -> None:
    masking = rules(tmp_path, '[[mask]]\njson_path = ["$.a.b", "$.a", "$.c"]\nreplace = 0')
    _, masked, _ = masking.masked_record("t", None, b'{"a":{"b":1},"c":{"b":2}}', ())
    assert masked == b'{"a":0,"c":0}'


def test_keys_values_and_headers_are_replaced_and_null_stays_null(tmp_path: Path) -> None:
    masking = rules(tmp_path, ALL)
    headers = (("agent", b"curl"), ("agent", None), ("other", b"x"))
    assert masking.masked_record("plain", b"me", b"secret", headers) == (
        b"k",
        b"v",
        (("agent", b"?"), ("agent", None), ("other", b"x")),
    )
    assert masking.masked_record("plain", None, None, ()) == (None, None, ())


def test_values_that_are_not_json_stay_and_are_counted(tmp_path: Path) -> None:
    masking = rules(tmp_path, ALL)
    for value in (b"no json", b'{"email":"a"} more', b"\xff", b'{"email":'):
        assert masking.masked_record("orders", None, value, ())[1] == value
    assert masking.not_json == 4


def test_record_batches_are_masked_as_records_are(tmp_path: Path) -> None:
    rows = [{"key": f"k{n}", "value": json.dumps({"email": f"a{n}@b", "age": n})} for n in range(5)]
    pylog.write_topic(tmp_path / "logs", "users", rows, key="key", value="value")
    masking = rules(tmp_path, ALL)
    scan = pylog.scan(tmp_path / "logs", include_headers=True)
    [batch] = [masking.masked(each) for each in scan.to_batches()]
    assert batch.schema == scan.schema
    assert batch.column("value").to_pylist() == [
        json.dumps({"email": "***", "age": None}).encode() for _ in rows
    ]
    [only] = pylog.scan(tmp_path / "logs", columns=["value"]).to_batches()
    assert masking.masked(only, "users").column("value") == batch.column("value")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected rules"),
        ("[[mask]]\nvalue = true", "rule 1 has replace = None, expected text"),
        ("[[mask]]\nkey = 'x'\nreplace='y'", "rule 1 has key = 'x', expected true"),
        ("[[mask]]\nkeys = true", "rule 1 has 'keys', expected topics, json_path"),
        ("[[mask]]\nreplace = 'x'", "rule 1 has 0 of json_path, header, key, value"),
        ("[[mask]]\njson_path = 'a'", "rule 1 has a wrong path"),
        ("[[mask]]\njson_path = '$.a=1'", "rule 1 has a path with a comparison"),
        ("[[mask]]\njson_path = '$.a'\nreplace = nan", "JSON does not have"),
        ("[[mask]]\nheader = []", "rule 1 has header = []"),
        ("[[mask", "the rules are not TOML"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_number(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[", r"\[")):
        rules(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match=r"rules\.toml"):
        read_mask_rules(tmp_path / "rules.toml")
