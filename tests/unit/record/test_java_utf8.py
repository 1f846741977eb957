"""Malformed UTF-8 in header keys, against what Java said of the same bytes."""

from __future__ import annotations

import hashlib

import pytest

from pylog.record.java_utf8 import decode_utf8
from pylog.record.record import decode_record
from tests.support.batches import record_v2
from tests.support.java_utf8 import ANSWERS, SHORT_INPUTS, SHORT_INPUTS_SHA256, all_short_inputs


@pytest.mark.parametrize(("data", "text"), ANSWERS)
def test_malformed_bytes_are_replaced_as_java_replaces_them(data: str, text: str) -> None:
    assert decode_utf8(bytes.fromhex(data)) == text


def test_all_short_inputs_are_decoded_as_java_decodes_them() -> None:
    digest = hashlib.sha256()
    count = 0
    for data in all_short_inputs():
        digest.update(decode_utf8(data).encode() + b"\xff")
        count += 1
    assert (count, digest.hexdigest()) == (SHORT_INPUTS, SHORT_INPUTS_SHA256)


def test_header_keys_of_the_readable_decoder_are_java_text() -> None:
    headers = [(bytes.fromhex(data), None) for data, _ in ANSWERS]
    data = memoryview(record_v2(0, 0, None, None, headers))
    found, _ = decode_record(data, 0, len(data))
    assert [header.key for header in found.headers] == [text for _, text in ANSWERS]
