"""A search by JSON path finds exactly what `json.loads` finds, however a document is spelled."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Spell = Callable[[], str]

SEED = 20_261_208
DOCUMENTS = 10_000
BATCH = 40
SEARCHES = 150
TEXTS = [
    "Zed",
    "a/b",
    'say "hi"',
    "C:\\tmp",
    "größe",
    "😀",
    "tab\there",
    "",
    "7",
    "\\u005a",
    "\x7f",
]
NAMES = ["id", "name", "a/b", "größe", "😀", "q\\", 'x"y', ""]
NUMBERS = ["0", "7", "100", "-12", "1.5", "123456789012345678901", "0.001"]
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\n": "\\n", "\t": "\\t"}


class Speller:
    """Writes JSON in a random one of its spellings."""

    def __init__(self, chance: random.Random, escapes: float) -> None:
        self._chance = chance
        self._escapes = escapes

    def space(self) -> str:
        return "".join(self._chance.choices(" \t\r\n", k=self._chance.choice([0, 0, 0, 1, 2])))

    def string(self, text: str) -> str:
        return '"' + "".join(map(self._character, text)) + '"'

    def _character(self, character: str) -> str:
        must = character in '"\\' or character < " "
        if not must and self._chance.random() >= self._escapes:
            return character
        if character in SHORT and self._chance.random() < 0.7:
            return SHORT[character]
        units = character.encode("utf-16-be")
        return "".join(
            "\\u" + self._chance.choice([str.lower, str.upper])(units[at : at + 2].hex())
            for at in range(0, len(units), 2)
        )

    def number(self, text: str) -> str:
        """Return another spelling of a number that has no exponent."""
        whole, _, fraction = text.partition(".")
        match self._chance.randrange(5):
            case 0:
                return f"{whole}.{fraction}{'0' * self._chance.randint(1, 3)}"
            case 1:
                return f"{text}{self._chance.choice('eE')}{self._chance.choice(['', '+', '-'])}0"
            case 2:
                zeros = len(whole) - len(whole.rstrip("0"))
                if not fraction and 0 < zeros < len(whole):
                    return f"{whole[: len(whole) - zeros]}e{zeros}"
            case 3:
                if not fraction and whole != "0":
                    return f"{whole}{'0' * 2}E-2"
            case _:
                if text == "0":
                    return "-0"
        return text

    def value(self, depth: int) -> str:
        match self._chance.randrange(7 if depth else 4):
            case 0 | 1:
                return self.string(self._chance.choice(TEXTS))
            case 2:
                return self.number(self._chance.choice(NUMBERS))
            case 3:
                return self._chance.choice(["true", "false", "null", str(self._chance.random())])
            case 4:
                return self.array(depth - 1)
            case _:
                return self.object(depth - 1)

    def array(self, depth: int) -> str:
        items = [self.value(depth) for _ in range(self._chance.randint(0, 3))]
        return self._joined("[", items, "]")

    def object(self, depth: int) -> str:
        members = [
            f"{self.string(self._chance.choice(NAMES))}{self.space()}:{self.space()}"
            f"{self.value(depth)}"
            for _ in range(self._chance.randint(0, 4))
        ]
        return self._joined("{", members, "}")

    def _joined(self, opening: str, parts: list[str], closing: str) -> str:
        comma = f"{self.space()},{self.space()}"
        return f"{opening}{self.space()}{comma.join(parts)}{self.space()}{closing}"


def random_document(chance: random.Random) -> bytes:
    speller = Speller(chance, chance.choice([0, 0, 0.05, 0.5, 1]))
    text = speller.object(2)
    if chance.random() < 0.05:
        text = text[: chance.randrange(len(text))]  # mostly not JSON any more
    return text.encode()


def random_path(chance: random.Random) -> tuple[list[Any], str | None]:
    steps: list[Any] = [
        chance.choice([*NAMES, *NAMES, 0, -1, None]) for _ in range(chance.randint(1, 2))
    ]
    match chance.randrange(6):
        case 0:
            return steps, None
        case 1 | 2:
            return steps, json.dumps(chance.choice(TEXTS))
        case 3 | 4:
            return steps, Speller(chance, 0).number(chance.choice(NUMBERS))
        case _:
            return steps, chance.choice(["true", "null", "[]", "{}", '["Zed"]'])


def written(steps: list[Any], expected: str | None) -> str:
    text = "$"
    for step in steps:
        if isinstance(step, str):
            escaped = step.replace("\\", "\\\\").replace("'", "\\'")
            text += f"['{escaped}']"
        else:
            text += "[*]" if step is None else f"[{step}]"
    return text if expected is None else f"{text}={expected}"


def loaded(text: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


def places(document: Any, steps: list[Any]) -> list[Any]:  # noqa: ANN401 - JSON
    found = [document]
    for step in steps:
        below: list[Any] = []
        for each in found:
            if isinstance(each, dict):
                if step is None:
                    below += each.values()
                elif isinstance(step, str) and step in each:
                    below.append(each[step])
            elif isinstance(each, list) and not isinstance(step, str):
                below += each if step is None else each[step:][:1] if -len(each) <= step else []
        found = below
    return found


def is_same(one: Any, other: Any) -> bool:  # noqa: ANN401 - JSON
    return (isinstance(one, bool) == isinstance(other, bool)) and one == other


def test_a_search_by_json_path_finds_what_a_parser_finds(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    values = [random_document(chance) for _ in range(DOCUMENTS)]
    codecs = ["none", "none", "lz4"]
    batches = [
        batch_v2(
            [
                Stored(start + at, 1, None, value)
                for at, value in enumerate(values[start : start + BATCH])
            ],
            codec=chance.choice(codecs),
        )
        for start in range(0, DOCUMENTS, BATCH)
    ]
    directory = write_partition(tmp_path, {0: batches}, name="t-0")
    documents = []
    for value in values:
        try:
            documents.append((True, loaded(value.decode())))
        except ValueError:
            documents.append((False, None))
    matches = 0
    for _ in range(SEARCHES):
        steps, text = random_path(chance)
        path = written(steps, text)
        expected = None if text is None else loaded(text)
        wanted = []
        for offset, (is_json, document) in enumerate(documents):
            found = places(document, steps) if is_json else []
            if (found and text is None) or any(is_same(each, expected) for each in found):
                wanted.append(offset)
        search = pylog.search(directory, json_path=path, columns="offset", threads=1)
        got = [offset for batch in search for offset in batch["offset"].to_pylist()]
        assert got == wanted, (SEED, path)
        matches += len(got)
    assert matches > 10 * SEARCHES, matches
