"""AND, OR and NOT of SQL: true, false, and None for what is not known."""

from __future__ import annotations

Truth = bool | None


def negation(one: Truth) -> Truth:
    """NOT."""
    return None if one is None else not one


def conjunction(one: Truth, other: Truth) -> Truth:
    """AND: false if one of them is, whatever the other."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def disjunction(one: Truth, other: Truth) -> Truth:
    """OR: true if one of them is, whatever the other."""
    return negation(conjunction(negation(one), negation(other)))
