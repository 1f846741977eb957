"""What the members of a group read, by topic."""

from __future__ import annotations

import random
from collections import Counter

from pylog.server.subscriptions import Subscriptions

KNOWN = dict.fromkeys(f"topic-{number}" for number in range(12)).keys()
MATCHING = {
    "": frozenset[str](),
    "none": frozenset[str](),
    ".*1": frozenset({"topic-1", "topic-11"}),
}


def test_it_has_what_all_members_that_are_left_read() -> None:
    chance = random.Random(848)
    subscriptions = Subscriptions()
    members: list[tuple[list[str], str]] = []
    for _ in range(400):
        if members and chance.random() < 0.5:
            subscriptions.remove(*members.pop(chance.randrange(len(members))))
        else:
            names = [f"topic-{number}" for number in chance.sample(range(20), chance.randrange(5))]
            member = names, chance.choice(list(MATCHING))
            subscriptions.add(*member)
            if member[1]:
                subscriptions.set_matching(member[1], MATCHING[member[1]])
            members.append(member)
        read = Counter(name for names, _ in members for name in names)
        matched = frozenset[str]().union(*(MATCHING[regex] for _, regex in members))
        assert subscriptions.topics(KNOWN) == (read.keys() & KNOWN) | matched
        assert subscriptions.size_bytes >= len(matched)
    while members:
        subscriptions.remove(*members.pop())
    assert (subscriptions.topics(KNOWN), subscriptions.size_bytes) == (frozenset(), 0)
