from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.internal_topics.decoders import DECODER_NAMES, DecoderName, dump_decoder
from pylog.internal_topics.versions import KafkaVersion
from tests.unit.internal_topics.dumped_records import (
    TOOL_DECODER_NAMES,
    TOOL_VERSIONS,
    DumpedRecord,
    dumped_records,
)

RECORDS = dumped_records()


def texts(name: DecoderName, record: DumpedRecord) -> str:
    """Return what stands after the metadata of a record, as the tools print it."""
    decoder = dump_decoder(name, KafkaVersion.parse(record.version.rpartition(".")[0]))
    key, value = decoder.decode(record.key, record.value, record.offset)
    parts = [] if key is None else [f"key: {key}"]
    parts += [] if value is None else [f"payload: {value}"]
    return " ".join(parts)


@pytest.mark.parametrize("name", TOOL_DECODER_NAMES)
@pytest.mark.parametrize("version", TOOL_VERSIONS)
def test_records_of_all_types_are_printed_as_kafkas_own_tool_prints_them(
    name: DecoderName, version: str
) -> None:
    chosen = [each for each in RECORDS if (each.decoder, each.version) == (name, version)]
    if (name, version) == ("share-group-state", "3.9.2"):
        assert not chosen  # which has no such decoder
        return
    assert len(chosen) >= 12
    for record in chosen:
        # The metadata was left out; which characters are left in their place depends on the tool.
        printed = record.text.removeprefix("| ").removeprefix(" ")
        assert texts(name, record) == printed, record


def test_a_version_without_a_decoder_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Kafka 3\.9 has no decoder of share group state"):
        dump_decoder("share-group-state", KafkaVersion.V3_9)
    with pytest.raises(ValueError, match="decoder 'offset' is not known, expected one of offsets,"):
        dump_decoder("offset")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DECODER_NAMES)
@given(
    key=st.binary(max_size=40),
    value=st.none() | st.binary(max_size=200),
    version=st.sampled_from([KafkaVersion.V4_0, KafkaVersion.V4_3]),
)
def test_no_bytes_make_a_decoder_fail_otherwise(
    name: DecoderName, key: bytes, value: bytes | None, version: KafkaVersion
) -> None:
    try:
        texts = dump_decoder(name, version).decode(key, value, 0)
    except InvalidRecordError:
        return
    assert any(isinstance(text, str) for text in texts)


@pytest.mark.parametrize("name", TOOL_DECODER_NAMES)
@given(data=st.data())
def test_no_change_of_a_sound_record_makes_a_decoder_fail_otherwise(
    name: DecoderName, data: st.DataObject
) -> None:
    record = data.draw(
        st.sampled_from([each for each in RECORDS if each.decoder == name and each.value])
    )
    value = bytearray(record.value or b"")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(value) - 1))
        value[at] = data.draw(st.integers(0, 255))
    try:
        dump_decoder(name).decode(record.key, bytes(value), 0)
    except InvalidRecordError:
        return


def test_a_length_that_promises_more_than_there_is_takes_no_memory() -> None:
    # An array of 2^31 - 2 topics in 5 bytes.
    value = b"\x00\x00" + b"\xff\xff\xff\xff\x07"
    key = b"\x00\x04\x00\x01g"
    expected = (
        "Error at offset 0, skipping. Could not read record with version 0 from value's buffer "
        "due to: Tried to allocate a collection of size 2147483646, but there are only 0 bytes "
        "remaining.."
    )
    assert dump_decoder("offsets").decode(key, value, 0) == (expected, None)
