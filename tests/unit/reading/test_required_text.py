from __future__ import annotations

import random
import re

import pytest

from pylog.reading.record_filter import required_text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("timeout", "timeout"),
        ("a.timeout", "timeout"),
        ("ERROR.*time out$", "time out"),
        (r"\[error\]", "[error]"),
        (r"\d{4}-x", "-x"),
        ("colou?r", "colo"),
        ("colou*r", "colo"),
        ("go+gle", "gle"),
        ("ab{2,3}cd", "cd"),
        ("[abc]def", "def"),
        ("[]abc]d", "d"),
        ("[^]abc]d", "d"),
        (r"[\]abc]d", "d"),
        ("(one)two", "two"),
        (r"(o\)(n[)]e)+)two", "two"),
        ("one|two", ""),
        ("(?i)one", ""),
        ("one(?!two)", ""),
        ("x{", ""),
        ("", ""),
    ],
)
def test_the_longest_text_outside_of_groups_is_required(pattern: str, text: str) -> None:
    assert required_text(pattern, re.compile(pattern).flags) == text


def test_flags_that_change_what_characters_mean_leave_nothing() -> None:
    assert required_text("one", re.IGNORECASE) == ""
    assert required_text("one two", re.VERBOSE) == ""


def test_whatever_a_random_pattern_matches_has_the_text() -> None:
    chance = random.Random(20_261_123)
    parts = [
        "a",
        "b",
        "ab",
        ".",
        "a*",
        "b+",
        "a?",
        "(ab)",
        "(a|b)",
        "[ab]",
        "[^a]",
        "b{2}",
        "a{0,1}",
    ]
    parts += [r"\.", r"\w", r"\x61", r"\Z", "^", "$", "b*?", "(a)?", r"\b", "{", "b{,2}"]
    matches = 0
    for _ in range(20_000):
        pattern = "".join(chance.choices(parts, k=chance.randint(1, 5)))
        try:
            compiled = re.compile(pattern)
        except re.error:
            continue
        text = "".join(chance.choices("ab.{", k=chance.randint(0, 8)))
        match = compiled.search(text)
        if match is not None:
            matches += 1
            assert required_text(pattern, compiled.flags) in match[0], (pattern, text)
    assert matches > 5_000
