from __future__ import annotations

import json
import random

import numpy as np
import pytest

from pylog.kernels.decode_avro import copy_spans, decode_avro, measure_spans
from pylog.record_lines.typed_json import json_texts
from pylog.typed import avro_decoder
from pylog.typed.avro_decoder import AvroDecoder
from pylog.typed.avro_schema import parse_schema
from tests.support.avro_schemas import AvroMaker
from tests.unit.typed.decoded import payloads

SEEDS = range(25)


def mutated(value: bytes, chance: random.Random) -> bytes:
    """Return a value with a byte changed, cut off, or put in."""
    at = chance.randrange(len(value) + 1)
    return chance.choice(
        [value[:at], value[:at] + chance.randbytes(1) + value[at + chance.randrange(2) :], value]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_code_and_python_decode_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    maker = AvroMaker(chance)
    schema = maker.record(3)
    values = [maker.value(schema) for _ in range(8)]
    values += [mutated(each, chance) for each in values for _ in range(6)]
    kinds = parse_schema(json.dumps(schema)), parse_schema(json.dumps(maker.newer(schema)))
    compiled = AvroDecoder(*kinds).decode(payloads(values))
    compiled.values.validate(full=True)
    monkeypatch.setattr(avro_decoder, "decode_avro", decode_avro.function)
    monkeypatch.setattr(avro_decoder, "copy_spans", copy_spans.function)
    monkeypatch.setattr(avro_decoder, "measure_spans", measure_spans.function)
    reference = AvroDecoder(*kinds).decode(payloads(values))
    assert reference.failures == compiled.failures
    # As text: Python has no date after the year 9999, and no number equals NaN.
    assert json_texts(reference.values).equals(json_texts(compiled.values))


def test_spans_of_any_length_are_copied_up_to_the_end_of_the_data() -> None:
    chance = random.Random(7)
    data, literals = chance.randbytes(200), b"literal" + bytes(8)
    spans = [(0, 200), (199, 1), (200, 0), (192, 8), (193, 7), (0, 33), (5, 32), (160, 40)]
    positions = np.array([*(at for at, _ in spans), ~2], dtype=np.int64)
    ends = np.array([0, *(size for _, size in spans), 5], dtype=np.int32)
    expected = b"".join(data[at : at + size] for at, size in spans) + b"teral"
    assert measure_spans(ends, positions.size) == len(expected)
    out = np.zeros(len(expected) + 16, dtype=np.uint8)
    copy_spans(
        *(np.frombuffer(data, np.uint8), np.frombuffer(literals, np.uint8)),
        *(positions, ends, positions.size, out),
    )
    assert out[: len(expected)].tobytes() == expected
    assert ends[-1] == len(expected)
