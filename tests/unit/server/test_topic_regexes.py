"""Regular expressions of the consumer protocol: what they match, and which are refused."""

from __future__ import annotations

import pytest

from pylog.server.group_config import GroupError
from pylog.server.protocol import Errors
from pylog.server.topic_regexes import matching_topics

TOPICS = ("orders", "orders-eu", "payments")


def test_whole_names_match() -> None:
    assert matching_topics("orders", TOPICS) == {"orders"}
    assert matching_topics("order.*|pay.*", TOPICS) == set(TOPICS)
    assert matching_topics("[a-z]{3,9}", TOPICS) == {"orders", "payments"}


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("(", "missing \\)"),
        ("(x?){1000}" * 50, "more than 1000 repetitions"),
        ("((x{20}){20}){20}", "more than 1000 repetitions"),
        ("x" * 1_001, "more than 1000 characters"),
        ("[\\p{L}]{1000}", "pattern too large"),
    ],
)
def test_an_expression_that_takes_long_to_compile_is_refused(regex: str, reason: str) -> None:
    with pytest.raises(GroupError, match=reason) as refused:
        matching_topics(regex, TOPICS)
    assert refused.value.error is Errors.INVALID_REGULAR_EXPRESSION
    assert len(str(refused.value.message)) < 1_200
