"""`FileUser`: what a user may do with a file, by its owner, group and mode."""

from __future__ import annotations

import os

import pytest

from pylog.files.file_user import READ, SEARCH, WRITE, FileUser

ME, MY_GROUP, OTHER = 1000, 100, 2000
USER = FileUser(ME, frozenset({MY_GROUP}))


def status(mode: int, uid: int, gid: int) -> os.stat_result:
    return os.stat_result((mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "wanted", "allowed"),
    [
        (0o600, ME, OTHER, READ | WRITE, True),
        (0o400, ME, OTHER, READ, True),
        (0o400, ME, OTHER, READ | WRITE, False),
        (0o077, ME, MY_GROUP, READ, False),  # the owner's bits alone count
        (0o060, OTHER, MY_GROUP, READ | WRITE, True),
        (0o707, OTHER, MY_GROUP, READ, False),  # the group's bits alone count
        (0o004, OTHER, OTHER, READ, True),
        (0o770, OTHER, OTHER, READ, False),
        (0o555, OTHER, OTHER, SEARCH, True),
        (0o555, OTHER, OTHER, WRITE | SEARCH, False),
    ],
)
def test_one_class_of_bits_counts(
    mode: int, uid: int, gid: int, wanted: int, *, allowed: bool
) -> None:
    assert USER.may(status(mode, uid, gid), wanted) is allowed


def test_root_may_do_anything() -> None:
    assert FileUser(0, None).may(status(0, OTHER, OTHER), READ | WRITE | SEARCH) is True


@pytest.mark.parametrize(
    ("mode", "allowed"), [(0o044, True), (0o000, False), (0o040, None), (0o004, None)]
)
def test_where_groups_are_not_known_the_bits_have_to_agree(
    mode: int, *, allowed: bool | None
) -> None:
    assert FileUser(ME, None).may(status(mode, OTHER, OTHER), READ) is allowed


def test_a_user_is_named_by_name_or_number() -> None:
    assert FileUser.named("root").uid == 0
    assert FileUser.named("0").uid == 0
    assert FileUser.named("4000000") == FileUser(4_000_000, None)
    assert str(FileUser.named("4000000")) == "uid 4000000"
    with pytest.raises(ValueError, match="'no such user' is no user of this host: give the number"):
        FileUser.named("no such user")
