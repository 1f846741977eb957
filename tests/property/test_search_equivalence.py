"""A search finds exactly what the same tests keep of everything that was written."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.batches import Built, Stored, batch_v2, message, wrapper
from tests.support.codecs import CODECS, LEGACY_CODECS
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Passes = Callable[[Stored], bool]

SEED = 20_261_123
LOGS = 40
COLUMNS = ("offset", "key", "value", "headers")
SEARCHES = 25
KEYS = [None, b"", b"a", b"user-7", b"user-77", "grün".encode(), b"\xff\x00"]
NAMES = ["trace", "t", "größe"]
WORDS = ["timeout", "time", "out", "größe", "ok", "page_view", "\\", '"', ""]


def random_value(chance: random.Random) -> bytes | None:
    word = chance.choice(WORDS)
    document: Any = {
        "word": word,
        "n": chance.choice([1, 1.0, 10**20, 2, True, None]),
        "list": [{"id": chance.randint(0, 3)}, word],
    }
    match chance.randrange(6):
        case 0:
            return chance.choice([None, b"", chance.randbytes(9)])
        case 1:
            return f"{chance.choice(WORDS)} {word}{chance.randint(0, 99)}".encode()
        case 2:
            return json.dumps(document, ensure_ascii=False).encode()
        case 3:
            return json.dumps(document).encode()  # in ASCII
        case 4:  # every character as an escape
            escaped = "".join(f"\\u{ord(each):04x}" for each in word)
            return f'{{"\\u0077ord":"{escaped}"}}'.encode()
        case _:
            return b"x" * chance.randint(0, 3_000) + word.encode()


def random_records(chance: random.Random, offset: int) -> list[Stored]:
    records = []
    for at in range(chance.randint(1, 6)):
        headers = tuple(
            (chance.choice(NAMES), chance.choice([None, b"", b"1", b"22"]))
            for _ in range(chance.choice([0, 0, 1, 2]))
        )
        value = random_value(chance)
        stamp = chance.randint(0, 1_000)
        records.append(Stored(offset + at, stamp, chance.choice(KEYS), value, headers))
    return records


def random_log(chance: random.Random, directory: Path) -> list[Stored]:
    built: list[Built] = []
    rows: list[Stored] = []
    for _ in range(chance.randint(1, 25)):
        records = random_records(chance, rows[-1].offset + 1 if rows else 0)
        if chance.random() < 0.2:
            records = [each._replace(headers=()) for each in records]
            magic = chance.choice([0, 1])
            if magic == 0:
                records = [each._replace(timestamp=-1) for each in records]
            if chance.random() < 0.5:
                codec = chance.choice([each for each in LEGACY_CODECS if each != "none"])
                built.append(wrapper(records, magic=magic, codec=codec))
            else:
                built += [message(each, magic=magic) for each in records]
        else:
            built.append(batch_v2(records, codec=chance.choice(CODECS)))
        rows += records
    write_partition(directory, {0: built}, name="t-0")
    return rows


def stored(row: dict[str, Any]) -> Stored:
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    return Stored(row["offset"], 0, row["key"], row["value"], headers)


def json_of(record: Stored) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads((record.value or b"").decode())
    except ValueError:
        return None


def random_test(chance: random.Random) -> tuple[str, Any, Passes]:
    """Return an argument of `pylog.search`, and what is to pass it."""
    word = chance.choice(WORDS)
    match chance.randrange(7):
        case 0:
            keys = chance.choices([key for key in KEYS if key is not None], k=chance.randint(1, 3))
            return "key", keys, lambda record: record.key in keys
        case 1:
            return (
                "value_contains",
                word,
                lambda record: record.value is not None and word.encode() in record.value,
            )
        case 2:
            pattern = chance.choice([f"{re.escape(word)}[0-9]", "time(out)?[1-9]*$", "^.ime", "ö."])
            return (
                "value_regex",
                pattern,
                lambda record: (
                    record.value is not None
                    and re.search(pattern, record.value.decode("utf-8", "surrogateescape"))
                    is not None
                ),
            )
        case 3:
            name = chance.choice(NAMES)
            value = chance.choice(["", "1", "22"])
            return (
                "header",
                f"{name}={value}",
                lambda record: (name, value.encode()) in record.headers,
            )
        case 4:
            name = chance.choice(NAMES)
            return "header", name, lambda record: name in [each[0] for each in record.headers]
        case 5:
            number = chance.randint(0, 3)
            return (
                "json_path",
                f"$.list[*].id={number}",
                lambda record: (
                    isinstance(json_of(record), dict)
                    and "list" in json_of(record)
                    and json_of(record)["list"][0]["id"] == number
                ),
            )
        case _:
            return (
                "json_path",
                f"$.word={json.dumps(word)}",
                lambda record: (
                    isinstance(json_of(record), dict) and json_of(record).get("word") == word
                ),
            )


def test_a_search_is_a_filtered_full_scan(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    matches = 0
    for number in range(LOGS):
        directory = tmp_path / str(number)
        rows = random_log(chance, directory)
        for _ in range(SEARCHES):
            chosen = [random_test(chance) for _ in range(chance.choice([1, 1, 1, 2]))]
            names = {name: argument for name, argument, _ in chosen}
            tests = [passes for name, argument, passes in chosen if names[name] is argument]
            expected = [row.offset for row in rows if all(passes(row) for passes in tests)]
            limit = chance.choice([None, None, 1, 3])
            found = pylog.search(directory, **names, limit=limit, threads=chance.choice([1, 2]))
            offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
            assert offsets == expected[:limit], (SEED, number, names)
            assert found.summary.matches == len(offsets)
            matches += len(offsets)
    assert matches > LOGS * SEARCHES  # the tests are not all too narrow


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_of_a_damaged_log_is_a_filtered_scan_of_what_is_sound(
    tmp_path: Path, threads: int
) -> None:
    chance = random.Random(SEED + threads)
    damaged = 0
    for number in range(LOGS // 2):
        directory = tmp_path / str(number)
        random_log(chance, directory)
        path = segment_path(directory / "t-0", 0)
        data = bytearray(path.read_bytes())
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        sound = pylog.scan(directory, columns=COLUMNS, mode="DROPMALFORMED", timestamp_unit="ms")
        left = [stored(row) for row in sound.to_table().to_pylist()]
        for _ in range(5):
            name, argument, passes = random_test(chance)
            chosen: dict[str, Any] = {name: argument}
            found = pylog.search(directory, **chosen, threads=threads)
            offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
            assert offsets == [row.offset for row in left if passes(row)], (SEED, number, chosen)
            assert found.summary.unreadable == tuple(sound.damage), (SEED, number, chosen)
        damaged += len(sound.damage)
    assert damaged > LOGS / 4


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_a_regular_expression_of_bytes_is_found_in_bytes(tmp_path: Path, flags: int) -> None:
    records = [Stored(at, 1, None, value) for at, value in enumerate([b"\xffAb", b"ab", b"\xffb"])]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="t-0")
    found = pylog.search(tmp_path, value_regex=re.compile(rb"\xffa?b", flags))
    offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
    assert offsets == ([0, 2] if flags else [2])
