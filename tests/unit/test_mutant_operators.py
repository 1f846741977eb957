"""The mutants that `make mutants` draws from."""

from __future__ import annotations

import pytest

from tests.mutants.operators import find_mutants


def _changes(source: str) -> set[str]:
    text = source.encode()
    return {mutant.applied(text).decode() for mutant in find_mutants(text)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a >= b", {"x = a > b"}),
        ("x = a is not b", {"x = a is b"}),
        ("x = a + 1", {"x = a - 1", "x = a", "x = a + 2"}),
        ("x = (a) * (b)", {"x = (a) // (b)"}),
        ("x = a and b or c", {"x = a or b or c", "x = a and b and c"}),
        ("x = not a", {"x = a"}),
        ("x = min(a, b)", {"x = max(a, b)"}),
        ("x = True", {"x = False"}),
        ("for _ in a:\n    break", {"for _ in a:\n    continue"}),
        ("sync(a)", {"pass"}),
        ("raise ValueError(1)", {"pass"}),
    ],
)
def test_each_change_is_made_once(source: str, expected: set[str]) -> None:
    assert _changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        'msg = f"{1 + 2} bytes"',
        "_LOGGER.warning(1)",
        "def __repr__(self): return 1 + 2",
        "def f(a: Literal[1]) -> Literal[2]: ...",
        "if TYPE_CHECKING:\n    x = 1",
        'x = "a" + b',
        '"""Doc."""',
    ],
)
def test_what_no_test_should_hold_is_left_alone(source: str) -> None:
    assert _changes(source) == set()


def test_an_operator_after_text_that_is_not_ascii_is_found() -> None:
    assert "x = 'ä', a <= b" in _changes("x = 'ä', a < b")
