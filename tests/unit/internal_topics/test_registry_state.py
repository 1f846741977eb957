from __future__ import annotations

import json
import random

import pytest

from pylog.internal_topics.registry_state import RegistryState, StoredSchema
from tests.support.registry_records import (
    NOOP,
    ORDER,
    ORDER_2,
    Record,
    clear_subject,
    compact,
    context,
    delete_subject,
    karapace_schema,
    of_subject,
    schema,
    tombstone,
)

SEED = 56


def state_of(*records: Record) -> RegistryState:
    state = RegistryState()
    for offset, (key, value) in enumerate(records):
        state.take(0, offset, 1_000 + offset, key, value)
    state.look_at_references()
    return state


def states(*records: Record) -> list[tuple[str, int, int, str]]:
    """Return subject, version, id and state."""
    return [(each.subject, each.version, each.id, str(each.state)) for each in found(*records)]


def found(*records: Record) -> list[StoredSchema]:
    return state_of(*records).schemas()


def codes(*records: Record) -> list[tuple[str, int | None]]:
    return [(each.code, each.offset) for each in state_of(*records).problems]


FIRST = schema("orders-value", 1, 7, ORDER)
SECOND = schema("orders-value", 2, 9, ORDER_2)


def test_versions_are_active() -> None:
    assert states(NOOP, FIRST, SECOND) == [
        ("orders-value", 1, 7, "active"),
        ("orders-value", 2, 9, "active"),
    ]
    assert codes(NOOP, FIRST, SECOND) == []


def test_a_version_that_is_written_again_as_deleted_is_soft_deleted() -> None:
    again = schema("orders-value", 1, 7, ORDER, deleted=True)
    (only,) = found(FIRST, again)
    assert (str(only.state), only.deleted, only.offset, only.timestamp) == (
        *("soft-deleted", True, 1),
        1_001,
    )


def test_deleting_a_subject_deletes_its_versions_up_to_one() -> None:
    third = schema("orders-value", 3, 7, ORDER)
    other = schema("invoices-value", 1, 7, ORDER)
    assert states(FIRST, SECOND, other, delete_subject("orders-value", 2), third) == [
        ("invoices-value", 1, 7, "active"),
        ("orders-value", 1, 7, "soft-deleted"),
        ("orders-value", 2, 9, "soft-deleted"),
        ("orders-value", 3, 7, "active"),
    ]


def test_an_impossible_version_to_delete_up_to_takes_no_time() -> None:
    assert states(FIRST, delete_subject("orders-value", (1 << 31) - 1))[0][3] == "soft-deleted"


def test_a_schema_outlives_its_tombstone() -> None:
    assert states(FIRST, SECOND, tombstone("orders-value", 1)) == [
        ("orders-value", 1, 7, "hard-deleted"),
        ("orders-value", 2, 9, "active"),
    ]
    assert states(tombstone("orders-value", 1)) == []


def test_the_json_null_is_a_tombstone_too() -> None:
    key, _ = tombstone("orders-value", 1)
    assert states(FIRST, (key, b"null"))[0][3] == "hard-deleted"


def test_a_schema_that_comes_back_is_active_again() -> None:
    assert states(FIRST, tombstone("orders-value", 1), FIRST) == [("orders-value", 1, 7, "active")]


def test_clearing_forgets_what_is_deleted() -> None:
    assert states(
        FIRST, SECOND, delete_subject("orders-value", 1), clear_subject("orders-value")
    ) == [
        ("orders-value", 1, 7, "hard-deleted"),
        ("orders-value", 2, 9, "active"),
    ]


@pytest.mark.parametrize(
    ("cleared", "expected"),
    [
        (":.dev:", {":.dev:a": "hard-deleted", "a": "soft-deleted"}),
        (":.__GLOBAL:", {":.dev:a": "hard-deleted", "a": "hard-deleted"}),
        ("b", {":.dev:a": "soft-deleted", "a": "soft-deleted"}),
    ],
)
def test_clearing_a_context_forgets_its_subjects(cleared: str, expected: dict[str, str]) -> None:
    records = [
        schema(":.dev:a", 1, 1, ORDER, deleted=True),
        schema("a", 1, 2, ORDER_2, deleted=True),
        clear_subject(cleared),
    ]
    assert {each[0]: each[3] for each in states(*records)} == expected


def test_another_schema_for_a_version_replaces_the_first() -> None:
    assert states(FIRST, schema("orders-value", 1, 8, ORDER_2)) == [
        ("orders-value", 1, 7, "replaced"),
        ("orders-value", 1, 8, "active"),
    ]


def test_an_id_that_is_given_twice_stays_with_the_first_text() -> None:
    taken = schema("invoices-value", 1, 7, ORDER_2)
    assert states(FIRST, taken) == [
        ("invoices-value", 1, 7, "ignored"),
        ("orders-value", 1, 7, "active"),
    ]
    assert codes(FIRST, taken) == [("duplicate_id", 1)]
    assert {each.schema for each in found(FIRST, taken)} == {ORDER, ORDER_2}
    (problem,) = state_of(FIRST, taken).problems
    assert "id 7 of invoices-value version 1 already belongs to orders-value version 1" in (
        problem.message
    )


def test_subjects_share_an_id_for_the_same_text() -> None:
    records = FIRST, schema("invoices-value", 4, 7, ORDER)
    assert [each[3] for each in states(*records)] == ["active", "active"]
    assert codes(*records) == []


def test_an_id_is_free_again_once_its_schemas_are_gone() -> None:
    taken = schema("invoices-value", 1, 7, ORDER_2)
    records = FIRST, tombstone("orders-value", 1), taken
    assert [each[3] for each in states(*records)] == ["active", "hard-deleted"]
    assert codes(*records) == []


def test_contexts_have_ids_of_their_own() -> None:
    records = context(".dev"), FIRST, schema(":.dev:orders-value", 1, 7, ORDER_2)
    assert [(each.context, str(each.state)) for each in found(*records)] == [
        (".dev", "active"),
        (".", "active"),
    ]
    assert state_of(*records).contexts == {".dev"}
    assert codes(*records) == []


def test_references_are_looked_up_in_their_context() -> None:
    base = schema(":.dev:common", 2, 1, ORDER)
    user = schema(":.dev:a", 1, 2, ORDER_2, references=[("Order", "common", 2)])
    assert codes(base, user) == []
    missing = schema("a", 1, 2, ORDER_2, references=[("Order", "common", 2)])
    assert codes(base, missing) == [("missing_reference", 1)]
    assert codes(base, user, tombstone(":.dev:common", 2)) == [("missing_reference", 1)]


def test_settings_are_the_last_of_each_subject() -> None:
    state = state_of(
        of_subject("CONFIG", None, {"compatibilityLevel": "BACKWARD"}),
        of_subject("CONFIG", "a", {"subject": "a", "alias": "b"}),
        of_subject("CONFIG", "a", {"subject": "a", "alias": "c"}),
        of_subject("CONFIG", "b", {"subject": "b", "compatibilityLevel": "FULL"}),
        of_subject("CONFIG", "b", None),
        of_subject("MODE", "a", {"subject": "a", "mode": "READONLY"}),
        of_subject("MODE", "c", {"mode": "IMPORT"}),
    )
    assert [(each.subject, each.mode, each.configs) for each in state.settings()] == [
        (None, None, {"compatibilityLevel": "BACKWARD"}),
        ("a", "READONLY", {"alias": "c"}),
        ("c", "IMPORT", {}),
    ]


def test_karapaces_records_are_read() -> None:
    new = karapace_schema("orders-value", 1, 7, ORDER)
    old = karapace_schema("orders-value", 2, 9, ORDER_2, deprecated=True)
    assert [each[3] for each in states(new, old)] == ["active", "active"]
    assert codes(new, old) == [("key_format", 1)]


def test_a_key_in_other_bytes_is_a_second_key() -> None:
    old = karapace_schema("orders-value", 1, 7, ORDER, deprecated=True)
    assert codes(FIRST, (old[0], None)) == [("second_key", 1), ("key_format", 1)]
    assert states(FIRST, (old[0], None))[0][3] == "hard-deleted"


def test_magic_0_is_noted_and_means_the_same_version() -> None:
    old = schema("orders-value", 1, 7, ORDER, magic=0)
    assert codes(old) == [("old_magic", 0)]
    assert states(old, tombstone("orders-value", 1))[0][3] == "hard-deleted"


def test_the_key_counts_where_the_value_says_something_else() -> None:
    key, _ = FIRST
    _, value = schema("invoices-value", 3, 7, ORDER)
    assert states((key, value)) == [("orders-value", 1, 7, "active")]
    assert codes((key, value)) == [("key_mismatch", 0)]


def test_problems_are_bounded() -> None:
    state = state_of(*[(b"{", None)] * 1_500)
    assert len(state.problems) == 1_000
    assert state.problem_counts == {"unreadable_record": 1_500}


def test_damaged_records_are_problems_and_the_others_still_count() -> None:
    """Any byte of a record may be another one."""
    chance = random.Random(SEED)
    kinds = [
        FIRST,
        SECOND,
        schema("a", 1, 3, "{}", references=[("n", "orders-value", 1)], metadata={"tags": {}}),
        of_subject("CONFIG", "a", {"alias": "b"}),
        of_subject("MODE", "a", {"mode": "IMPORT"}),
        delete_subject("a", 1),
        clear_subject("a"),
        context(".x"),
        NOOP,
    ]
    outcomes = set()
    for _ in range(3_000):
        key, value = (None if each is None else bytearray(each) for each in chance.choice(kinds))
        for part in (key, value):
            for _ in range(chance.randrange(3) if part else 0):
                assert part is not None
                part[chance.randrange(len(part))] = chance.randrange(256)
        harmed = tuple(None if each is None else bytes(each) for each in (key, value))
        state = state_of((harmed[0], harmed[1]), schema("z", 1, 99, '"string"'))
        last = state.schemas()
        outcomes.add(len(state.problems))
        json.dumps([each.schema for each in last])
        "".join(each.subject + each.schema for each in last).encode()
        assert any(each.id == 99 for each in last)
    assert {0, 1} <= outcomes


def test_a_large_schema_is_kept_whole() -> None:
    text = compact(
        {"type": "enum", "symbols": [f"S{number}" for number in range(200_000)]}
    ).decode()
    (only,) = found(schema("a", 1, 1, text))
    assert only.schema == text
