"""Which records a coordinator refuses; a broker is asked in tests/broker/test_group_outlook.py."""

from __future__ import annotations

import pytest

from pylog.internal_topics.group_kinds import GroupKinds, MixedKinds
from tests.support.group_records import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    classic,
    commit,
    modern,
    tombstone,
)

STEPS = {
    "commit": commit("g"),
    "no commit": (commit("g")[0], None),
    "classic": classic("g"),
    "member": classic("g", "orders", has_member=True),
    "simple": classic("g", protocol_type=""),
    "simple member": classic("g", protocol_type="", has_member=True),
    "consumer": modern(CONSUMER, "g"),
    "share": modern(SHARE, "g"),
    "streams": modern(STREAMS, "g"),
    "no classic": tombstone(CLASSIC, "g"),
    "no consumer": tombstone(CONSUMER, "g"),
    "no share": tombstone(SHARE, "g"),
    "other": modern(SHARE, "h"),
    "of 4.0": (b"\x00\x09\x00\x01g", b"\x00\x00"),
    "later": (b"\x00\x63\x00\x01g", b"\x00\x00"),
}


@pytest.mark.parametrize(
    ("steps", "mixed"),
    [
        (["commit", "consumer", "commit"], None),
        (["commit", "streams"], None),
        (["commit", "share"], MixedKinds("g", 1, "share", "simple")),
        (["no commit", "share"], None),
        (["simple", "consumer"], None),
        (["simple member", "consumer"], MixedKinds("g", 1, "consumer", "classic")),
        (["classic", "consumer"], MixedKinds("g", 1, "consumer", "classic")),
        (["member", "no consumer"], MixedKinds("g", 1, "consumer", "classic")),
        (["member", "no classic", "consumer"], None),
        (["consumer", "classic"], None),
        (["consumer", "classic", "consumer"], MixedKinds("g", 2, "consumer", "classic")),
        (["consumer", "share"], MixedKinds("g", 1, "share", "consumer")),
        (["consumer", "no consumer", "share"], None),
        (["no consumer", "share"], None),
        (["share", "streams", "consumer"], MixedKinds("g", 1, "streams", "share")),
        (["consumer", "other", "of 4.0", "later"], None),
    ],
)
def test_a_record_of_another_kind_than_its_group_is_refused(
    steps: list[str], mixed: MixedKinds | None
) -> None:
    kinds = GroupKinds()
    for offset, step in enumerate(steps):
        kinds.take(offset, *STEPS[step])
    assert kinds.mixed == mixed
