"""The age of offsets; a broker is asked in tests/broker/test_group_outlook.py."""

from __future__ import annotations

import pytest

from pylog.internal_topics.consumer_offsets import group_records as reader
from pylog.internal_topics.group_state import group_states
from tests.support.group_records import (
    CONSUMER,
    STREAMS,
    classic,
    commit,
    consumer_member,
    matching,
    modern,
    streams_member,
    topology,
)

NOW, RETENTION = 10_000_000, 1_000
OLD, JUST_OLD, JUST_YOUNG, YOUNG = NOW - 5_000, NOW - 1_000, NOW - 999, NOW
STREAMS_MEMBER = streams_member("g")
PATTERN = matching("g", "o.*", "orders")


@pytest.mark.parametrize(
    ("at", "expires_at", "others", "expires"),
    [
        (JUST_OLD, None, [], True),
        (JUST_YOUNG, None, [], False),
        (YOUNG, NOW, [], True),
        (OLD, NOW + 1, [], False),
        (OLD, -1, [], True),
        # A classic group: since when it is empty.
        (YOUNG, None, [classic("g", since=OLD)], True),
        (OLD, None, [classic("g", since=YOUNG)], False),
        (OLD, None, [classic("g")], True),
        (OLD, None, [classic("g", since=OLD, protocol_type="connect")], True),
        (OLD, None, [classic("g", since=YOUNG, protocol_type="")], True),
        (OLD, None, [classic("g", "orders", since=OLD, has_member=True)], False),
        (OLD, None, [classic("g", "other", since=OLD, has_member=True)], None),
        (YOUNG, None, [classic("g", "other", since=OLD, has_member=True)], False),
        (OLD, None, [classic("g", since=OLD, has_member=True, protocol_type="connect")], False),
        # Other groups: since the commit, but for topics that members have subscribed to.
        (OLD, None, [modern(CONSUMER, "g")], True),
        (YOUNG, None, [modern(CONSUMER, "g")], False),
        (OLD, None, [modern(CONSUMER, "g"), consumer_member("g", "orders")], None),
        (OLD, None, [modern(CONSUMER, "g"), consumer_member("g", "other")], True),
        (OLD, None, [modern(CONSUMER, "g"), consumer_member("g", pattern="o.*"), PATTERN], None),
        (OLD, None, [modern(STREAMS, "g"), topology("g", "orders")], True),
        (OLD, None, [modern(STREAMS, "g"), topology("g", "orders"), STREAMS_MEMBER], None),
        (OLD, None, [modern(STREAMS, "g"), topology("g", "other"), STREAMS_MEMBER], True),
    ],
)
def test_offsets_expire_by_what_their_group_is(
    at: int,
    expires_at: int | None,
    others: list[tuple[bytes, bytes | None]],
    *,
    expires: bool | None,
) -> None:
    records = [commit("g", at=at, expires=expires_at), *others]
    group = group_states(reader().read(*record) for record in records)["g"]
    stored = group.offsets["orders", 0]
    assert group.expires("orders", stored, NOW, RETENTION) is expires
