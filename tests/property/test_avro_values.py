"""Values of random schemas are read as fastavro reads them, and what is harmed is never wrong."""

from __future__ import annotations

import io
import json
import random
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pylog.typed.avro_decoder import AvroDecoder
from pylog.typed.avro_schema import parse_schema
from tests.support.avro_schemas import AvroMaker
from tests.unit.typed.decoded import payloads, plain_values

if TYPE_CHECKING:
    from tests.conftest import HowMany

fastavro = pytest.importorskip("fastavro")

SCHEMAS = 300
VALUES = 10
HARMED = 20
SEED = 20_261_129


def is_same(ours: Any, theirs: Any) -> bool:  # noqa: ANN401 - any values
    """Whether values are equal: fastavro has 64 bits for any float, and UUIDs for their texts."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(theirs, uuid.UUID):
        return uuid.UUID(ours) == theirs
    if isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        is_nan = ours != ours and theirs != theirs  # noqa: PLR0124 - of NaN alone
        return bool(ours == theirs or is_nan or np.float32(ours) == np.float32(theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


def harmed(value: bytes, chance: random.Random) -> bytes:
    """Return a value with bytes changed, cut off, put in or appended."""
    changed = bytearray(value)
    at = chance.randrange(len(value) + 1)
    way = chance.randrange(4)
    if way == 0:
        del changed[at:]
    elif way == 1:
        changed[at:at] = chance.randbytes(chance.randrange(1, 9))
    elif way == 2:
        changed += chance.randbytes(1)
    elif changed:
        changed[at - 1] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of float32, which NumPy warns of
def test_values_of_any_schema_read_by_any_newer_one(how_many: HowMany) -> None:
    for number in range(how_many(60, SCHEMAS)):
        chance = random.Random(SEED + number)
        maker = AvroMaker(chance)
        writer = reader = maker.record(3)
        for _ in range(chance.randrange(3)):
            reader = maker.newer(reader)
        values = [maker.value(writer) for _ in range(VALUES)]
        values += [harmed(chance.choice(values), chance) for _ in range(HARMED)]
        texts = json.dumps(writer), json.dumps(reader)
        result = AvroDecoder(*map(parse_schema, texts)).decode(payloads(values))
        result.values.validate(full=True)
        assert all(row >= VALUES for row in result.failures), (texts, result.failures)
        schemas = [fastavro.parse_schema(json.loads(each)) for each in texts]
        for row, value in enumerate(values):
            if row in result.failures:
                continue
            stream = io.BytesIO(value)
            try:
                expected = fastavro.schemaless_reader(stream, *schemas)
                (ours,) = plain_values(result.values.slice(row, 1))
            except (OverflowError, ValueError):
                continue  # a date or a UUID that Python has no value for
            assert stream.tell() == len(value)
            assert is_same(ours, expected), (number, row, value.hex(), texts)
