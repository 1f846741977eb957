"""Which topics a regular expression of the consumer protocol matches (KIP-848), by RE2.

RE2 takes time linear in what it matches, but to compile an expression may take it seconds: so both
are done in a thread, and expressions have bounds.

Source: TopicRegexResolver (Kafka 4.4), which has no bounds.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.server.group_config import GroupError
from pylog.server.protocol import Errors

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")

_MOST_CHARACTERS = 1_000
_MOST_REPETITIONS = 1_000
_COUNT = re.compile(r"\{(?:\d*,)?(\d{1,9})")


def ensure_valid_regex(regex: str) -> None:
    """Raise `GroupError` unless an expression may be used; RE2 compiles it."""
    if len(regex) > _MOST_CHARACTERS:
        raise _refused(regex[:50] + "…", f"more than {_MOST_CHARACTERS} characters")
    # Of counts inside each other the product counts; one after the other they are that many, too.
    if math.prod(max(int(count), 1) for count in _COUNT.findall(regex)) > _MOST_REPETITIONS:
        raise _refused(regex, f"more than {_MOST_REPETITIONS} repetitions")
    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        # Arrow repeats the expression after the reason, and has a prefix before it.
        text = str(error).removeprefix("Invalid regular expression: ")
        raise _refused(regex, text.rpartition(": ")[0] or text) from error


def matching_topics(regex: str, names: Collection[str]) -> frozenset[str]:
    """Return the names that match as a whole; `GroupError` as of `ensure_valid_regex`."""
    ensure_valid_regex(regex)
    all_names = pa.array(sorted(names), pa.string())
    is_match = pc.match_substring_regex(all_names, rf"\A(?:{regex})\z")
    return frozenset(all_names.filter(is_match).to_pylist())


def _refused(regex: str, reason: str) -> GroupError:
    message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."
    return GroupError(Errors.INVALID_REGULAR_EXPRESSION, message)
