"""What the kernel reads of JSON is what the reader in plain Python reads; the rest is left."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pylog.kernels import json_values as kernel
from pylog.typed.json_reader import read_json
from pylog.typed.json_types import as_text, node_of
from pylog.typed.json_values import JsonDecoder
from pylog.typed.kernel_runs import UnreadablePayloadError
from tests.support.json_texts import random_struct, random_value, write_text
from tests.support.payloads import payloads_of

SEED = 56_06


def ensure_as_read_one_by_one(kind: pa.DataType | pa.Field, texts: list[bytes]) -> None:
    field = kind if isinstance(kind, pa.Field) else pa.field("", kind)
    node = node_of(field)
    result = JsonDecoder(field).decode(payloads_of(texts))
    result.values.validate(full=True)
    for place, text in enumerate(texts):
        try:
            expected = pa.array([read_json(text, node)], node.type)
        except UnreadablePayloadError:
            assert place in result.failures
        else:
            assert result.values.slice(place, 1).equals(expected), text


def test_random_texts_some_of_them_damaged() -> None:
    rnd = random.Random(SEED)
    for _ in range(10):
        kind = random_struct(rnd)
        texts = []
        for _ in range(10):
            text = bytearray(write_text(rnd, random_value(rnd, kind), kind).encode())
            if rnd.random() < 0.4:
                text[rnd.randrange(len(text))] = rnd.choice(b'"\\{}[],:09.eE+- \x80')
            texts.append(bytes(text))
        ensure_as_read_one_by_one(kind, texts)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int64(), pa.float64(), pa.decimal128(18, 3), pa.string(), pa.bool_(), as_text("")),
        *(pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.date32()),
        pa.list_(pa.map_(pa.string(), pa.string())),
    ],
)
def test_every_cut_of_a_text(kind: pa.DataType | pa.Field) -> None:
    samples = (
        *(b"-1234567890123456789", b"123456.789e-12", b"1.7976931348623157e308", b"true", b"null"),
        *(b'"2024-02-29T23:59:59.123456+01:30"', b'"2024-02-29T23:59:59.5"', b'"2024-02-29"'),
        *(b'"\\ud83d\\ude00 \xc3\xa9\\n"', b'[{"a":"b","c":"\\t","a":"d"}]', b'{"a":[{},[1,2]]}'),
    )
    texts = [sample[:end] for sample in samples for end in range(len(sample) + 1)]
    ensure_as_read_one_by_one(kind, texts)


def test_a_float_is_the_nearest_one_or_left() -> None:
    rnd = random.Random(SEED + 1)
    texts = [f"{rnd.randrange(10**19)}e{rnd.randrange(-330, 289)}" for _ in range(500)]
    texts += [f"{rnd.randrange(2**53, 2**55)}e{rnd.randrange(-5, 25)}" for _ in range(500)]
    found = JsonDecoder(pa.float64()).decode(payloads_of([each.encode() for each in texts]))
    assert np.array(found.values).tolist() == [float(text) for text in texts]


def test_constants_of_a_program_fit_its_width() -> None:
    assert 1 << kernel.LOG_COLUMNS == kernel.COLUMNS
