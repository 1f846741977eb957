"""The reader in plain Python is held against Python's ``json``."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from pylog.typed.json_reader import read_json
from pylog.typed.json_types import as_text, node_of
from pylog.typed.kernel_runs import UnreadablePayloadError
from tests.support.json_texts import random_struct, random_value, write_text

SEED = 56_05
ANY = node_of(as_text(""))


def accepts(text: bytes) -> bool:
    """Return whether the reader takes any JSON to be sound."""
    try:
        read_json(text, ANY)
    except UnreadablePayloadError:
        return False
    return True


def python_accepts(text: bytes) -> bool:
    def refuse(word: str) -> Any:  # noqa: ANN401
        raise ValueError(word)

    try:
        json.loads(text.decode(), parse_constant=refuse, parse_int=len, parse_float=len)
    except ValueError:
        return False
    return True


def test_what_is_json_is_what_python_says() -> None:
    rnd = random.Random(SEED)
    sound = 0
    for _ in range(2_000):
        kind = random_struct(rnd)
        text = bytearray(write_text(rnd, random_value(rnd, kind), kind).encode())
        if rnd.random() < 0.8:
            text[rnd.randrange(len(text))] = rnd.choice(b'"\\{}[],:0.eE+- \xff')
        assert accepts(bytes(text)) == python_accepts(bytes(text)), bytes(text)
        sound += accepts(bytes(text))
    assert 500 < sound < 1_500


@pytest.mark.parametrize("text", [b"01", b"1.", b".5", b"+1", b"-", b"1e", b"[1,]", b'{"a":1,}'])
def test_what_python_refuses_is_refused(text: bytes) -> None:
    assert not python_accepts(text)
    assert not accepts(text)
    with pytest.raises(UnreadablePayloadError):
        read_json(text, node_of(pa.field("", pa.int64())))
