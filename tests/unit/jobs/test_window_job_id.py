"""Job ids of windows: those of before where they are of one window alone, and never one for two."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_jobs.config_file import replace_placeholders
from pylog_jobs.window_job_id import WindowJobId, window_job_id

WINDOW = {
    "date": "2026-11-22",
    "hour": "03",
    "start": "2026-11-22T03:00:00Z",
    "end": "2026-11-22T04:00:00.500000Z",
}


def job_id(template: str, more: tuple[str, ...] = (), **parameters: str) -> WindowJobId:
    values = {**WINDOW, **parameters}
    return window_job_id(template, replace_placeholders(template, values), values, more)


@pytest.mark.parametrize(
    ("template", "more", "parameters", "expected"),
    [
        ("orders-{date}", (), {}, "orders-2026-11-22"),
        ("{region}-{date}", (), {"region": "eu-west"}, "eu-west-2026-11-22"),
        ("{region}-{start}", (), {"region": "a-2026"}, "a-2026-2026-11-22T03:00:00Z"),
        ("{date}{hour}", (), {}, "2026-11-2203"),
        ("{a}-{b}", (), {"a": "eu", "b": "books"}, "eu-books"),
        ("{a}-{a}-{b}", (), {"a": "x-y", "b": "1"}, "x-y-x-y-1"),
        ("o", ("a", "b"), {"a": "1", "b": "2"}, "o a=1 b=2"),
        ("o-{a}", ("end",), {"a": "1"}, "o-1 end=2026-11-22T04:00:00.500000Z"),
        ("{a}.{b}", (), {"a": "*", "b": "+"}, "*.+"),
    ],
)
def test_the_id_of_ordinary_values_is_what_it_was(
    template: str, more: tuple[str, ...], parameters: dict[str, str], expected: str
) -> None:
    assert job_id(template, more, **parameters) == (expected, None)


def test_ids_that_two_windows_had_have_a_hash() -> None:
    one, two = job_id("o", ("a", "b"), a="1 b=2", b="3"), job_id("o", ("a", "b"), a="1", b="2 b=3")
    assert one.ambiguous == two.ambiguous == "o a=1 b=2 b=3"
    assert one.text.startswith("o a=1 b=2 b=3 #")
    assert one.text != two.text
    assert one == job_id("o", ("a", "b"), a="1 b=2", b="3")


def test_a_value_cannot_imitate_a_hash() -> None:
    other = job_id("{a}-{b}", a="1-2", b="3")
    imitation = job_id("{a}", a=other.text)
    assert imitation.ambiguous == other.text
    assert imitation.text != other.text


@given(
    template=st.sampled_from(["{a}-{b}", "{a}{b}", "o", "o-{a}", "{a}-{date}-{b}", "{b} a={a}"]),
    pairs=st.lists(
        st.tuples(*[st.text(st.sampled_from("-= ab1#"), max_size=5)] * 2), max_size=6, unique=True
    ),
)
def test_no_two_windows_have_one_id(template: str, pairs: list[tuple[str, str]]) -> None:
    more = tuple(name for name in "ab" if f"{{{name}}}" not in template)
    ids = [job_id(template, more, a=a, b=b).text for a, b in pairs]
    assert len({*ids}) == len(pairs)


def test_no_two_windows_of_short_values_have_one_id() -> None:
    texts = ["".join(each) for length in range(4) for each in product("1-", repeat=length)]
    ids = [job_id("{a}-{b}", a=a, b=b).text for a, b in product(texts, repeat=2)]
    assert len({*ids}) == len(texts) ** 2
