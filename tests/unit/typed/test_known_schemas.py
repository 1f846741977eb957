from __future__ import annotations

from pylog.internal_topics.registry_state import RegistryState
from pylog.typed.known_schemas import KnownSchema, KnownSchemas, registered_schemas
from tests.support.registry_records import (
    ORDER,
    ORDER_2,
    Record,
    delete_subject,
    schema,
    tombstone,
)


def known(*records: Record) -> KnownSchemas:
    state = RegistryState()
    for offset, (key, value) in enumerate(records):
        state.take(0, offset, 1_000, key, value)
    return registered_schemas(state.schemas())


def test_all_schemas_are_found_by_id_also_deleted_ones() -> None:
    found = known(
        schema("a-value", 1, 1, ORDER),
        schema("a-value", 2, 2, ORDER_2),
        tombstone("a-value", 1),
        schema("b-value", 1, 3, '"int"'),
        delete_subject("b-value", 1),
    )
    assert {number: each.text for number, each in found.by_id.items()} == {
        1: ORDER,
        2: ORDER_2,
        3: '"int"',
    }
    assert found.latest("a-value") == found.by_id[2]
    assert found.latest("b-value") == found.by_id[3]  # nothing else is left
    assert found.version("a-value", 1) == found.by_id[1]
    assert found.version("a-value", 3) is None
    assert found.latest("nothing") is None
    assert found.subjects_of(found.by_id[1]) == ["a-value"]


def test_the_last_version_that_is_not_deleted_is_the_latest() -> None:
    found = known(
        schema("a-value", 1, 1, ORDER),
        schema("a-value", 2, 2, ORDER_2, deleted=True),
    )
    assert found.latest("a-value") == found.by_id[1]


def test_an_id_that_was_given_twice_is_what_the_registry_takes_it_for() -> None:
    found = known(schema("a", 1, 7, ORDER), schema("b", 1, 7, '"int"'))
    assert found.by_id[7].text == ORDER


def test_the_default_context_comes_before_others() -> None:
    found = known(
        schema(":.dev:a", 1, 7, '"int"'),
        schema(":.dev:b", 1, 8, '"long"'),
        schema("a", 1, 7, ORDER),
    )
    assert found.by_id[7].text == ORDER
    assert found.by_id[8].text == '"long"'


def test_references_come_in_the_order_in_which_they_use_each_other() -> None:
    found = known(
        schema("user", 1, 3, "U", references=[("city", "city", 1), ("size", "size", 1)]),
        schema("city", 1, 2, "C", references=[("size", "size", 1), ("gone", "gone", 9)]),
        schema("size", 1, 1, "S", references=[("user", "user", 1)]),
    )
    assert [name for name, _ in found.by_id[3].references] == ["size", "city"] or [
        name for name, _ in found.by_id[3].references
    ][-2:] == ["size", "city"]


def test_files_replace_what_a_registry_has() -> None:
    found = known(schema("a", 1, 7, ORDER))
    by_hand = KnownSchema(7, "AVRO", '"int"')
    found.add(7, by_hand)
    found.add("dac6989d-b986-4ae6-b89d-dfea3edc9d86", by_hand)
    assert found.by_id[7] is by_hand
    assert found.by_uuid["dac6989d-b986-4ae6-b89d-dfea3edc9d86"] is by_hand
    assert (str(by_hand), str(KnownSchema(None, "AVRO", ""))) == (
        "schema 7",
        "the schema that was given",
    )
