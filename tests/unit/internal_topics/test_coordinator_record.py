"""Records of the topics of coordinators have keys."""

from __future__ import annotations

import pytest

from pylog.errors import InvalidRecordError
from pylog.internal_topics.decoders import DecoderName, dump_decoder
from pylog.internal_topics.versions import KafkaVersion


@pytest.mark.parametrize("name", ["offsets", "transaction-log", "share-group-state"])
@pytest.mark.parametrize("version", [KafkaVersion.V4_0, KafkaVersion.V4_3])
def test_a_record_without_a_key_ends_the_dump_of_a_coordinators_topic(
    name: DecoderName, version: KafkaVersion
) -> None:
    decoder = dump_decoder(name, version)
    with pytest.raises(InvalidRecordError, match=r"at offset 7 .* had a missing key"):
        decoder.decode(None, b"", 7)
