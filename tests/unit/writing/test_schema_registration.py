from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pylog import scan
from pylog.errors import InvalidSchemaError, LogLockedError, NoSchemaError
from pylog.log.log_manager import LogManager
from pylog.writing.schema_registration import (
    SchemaRegistration,
    plan_registration,
    register_schemas,
)
from pylog.writing.writer_schema import WriterSchema
from tests.support.registry_records import (
    ORDER,
    ORDER_2,
    Record,
    delete_subject,
    of_subject,
    schema,
    tombstone,
    write_registry,
)

if TYPE_CHECKING:
    from pathlib import Path

NAMED = ORDER.replace('"Order"', '"Other"')


def schema_file(tmp_path: Path, text: str = ORDER, name: str = "order.avsc") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def registry(tmp_path: Path, *records: Record) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir(exist_ok=True)
    write_registry(logs, records)
    return logs


def planned(
    logs: Path,
    file: Path | None,
    **more: Any,  # noqa: ANN401 - any value
) -> SchemaRegistration:
    return plan_registration(logs, "orders", {"value": WriterSchema(schema=file, **more)})


def new_id(plan: SchemaRegistration) -> object:
    return plan.encoders["value"].schema.id


def entered(logs: Path, plan: SchemaRegistration) -> list[tuple[bytes, bytes | None]]:
    """Return the registry's records after the plan was carried out."""
    with LogManager([logs]) as manager:
        plan.enter(manager)
    table = scan(logs, topics="_schemas", columns=("key", "value")).to_table()
    return [(each["key"], each["value"]) for each in table.to_pylist()]


def test_a_new_schema_is_entered_as_a_registry_enters_it(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    text = json.dumps(json.loads(ORDER), indent=2)  # written in another way, it is the same

    plan = planned(logs, schema_file(tmp_path, text))

    assert new_id(plan) == 1
    assert not logs.exists()
    assert entered(logs, plan) == [schema("orders-value", 1, 1, ORDER)]


def test_the_registrys_topic_is_compacted(tmp_path: Path) -> None:
    logs = tmp_path / "logs"

    entered(logs, planned(logs, schema_file(tmp_path)))

    with LogManager([logs]) as manager:
        assert manager.stored_properties("_schemas") == {"cleanup.policy": "compact"}


def test_json_schemas_have_their_type(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    file = schema_file(tmp_path, '{"type": "object"}', "order.json")

    (record,) = entered(logs, planned(logs, file))

    assert record == schema("orders-value", 1, 1, '{"type":"object"}', kind="JSON")


def test_what_the_subject_has_is_not_entered_again(tmp_path: Path) -> None:
    records = schema("orders-value", 1, 4, ORDER), schema("orders-value", 2, 5, ORDER_2)
    logs = registry(tmp_path, *records)

    plan = planned(logs, schema_file(tmp_path))

    assert new_id(plan) == 4
    assert entered(logs, plan) == [*records]


def test_another_subjects_schema_keeps_its_id(tmp_path: Path) -> None:
    logs = registry(tmp_path, schema("other-value", 3, 4, ORDER), schema("more", 1, 9, NAMED))

    plan = planned(logs, schema_file(tmp_path))

    assert entered(logs, plan)[2:] == [schema("orders-value", 1, 4, ORDER)]


def test_ids_are_never_given_twice(tmp_path: Path) -> None:
    logs = registry(tmp_path, schema("gone", 1, 41, NAMED), tombstone("gone", 1))

    assert new_id(planned(logs, schema_file(tmp_path))) == 42


def test_a_deleted_version_of_the_same_schema_is_removed(tmp_path: Path) -> None:
    logs = registry(
        tmp_path, schema("orders-value", 1, 4, ORDER), delete_subject("orders-value", 1)
    )

    records = entered(logs, planned(logs, schema_file(tmp_path)))

    assert records[2:] == [tombstone("orders-value", 1), schema("orders-value", 2, 4, ORDER)]


def test_a_deleted_version_that_another_schema_uses_stays(tmp_path: Path) -> None:
    user = schema("user", 1, 5, NAMED, references=[("Order", "orders-value", 1)])
    deleted = delete_subject("orders-value", 1)
    logs = registry(tmp_path, schema("orders-value", 1, 4, ORDER), user, deleted)

    records = entered(logs, planned(logs, schema_file(tmp_path)))

    assert records[3:] == [schema("orders-value", 2, 4, ORDER)]


def test_a_new_version_has_to_be_compatible(tmp_path: Path) -> None:
    logs = registry(tmp_path, schema("orders-value", 1, 4, ORDER))

    with pytest.raises(InvalidSchemaError) as caught:
        planned(logs, schema_file(tmp_path, NAMED))

    assert str(caught.value) == (
        "subject orders-value: the schema is not compatible (BACKWARD) with the versions before: "
        "the new schema cannot read: the writer's record Order has another name than record Other. "
        "Compatibility NONE registers it nevertheless"
    )


@pytest.mark.parametrize(
    "settings",
    [
        [of_subject("CONFIG", None, {"compatibilityLevel": "NONE"})],
        [
            of_subject("CONFIG", None, {"compatibilityLevel": "FULL"}),
            of_subject("CONFIG", "orders-value", {"compatibilityLevel": "NONE"}),
        ],
    ],
)
def test_the_registrys_level_counts(tmp_path: Path, settings: list[Record]) -> None:
    logs = registry(tmp_path, *settings, schema("orders-value", 1, 4, ORDER))

    assert new_id(planned(logs, schema_file(tmp_path, NAMED))) == 5
    with pytest.raises(InvalidSchemaError, match="FORWARD"):
        planned(logs, schema_file(tmp_path, NAMED), compatibility="FORWARD")


def test_versions_that_are_deleted_are_not_compared(tmp_path: Path) -> None:
    logs = registry(
        tmp_path, schema("orders-value", 1, 4, ORDER), delete_subject("orders-value", 1)
    )

    assert new_id(planned(logs, schema_file(tmp_path, NAMED))) == 5


def test_another_type_needs_the_level_none(tmp_path: Path) -> None:
    logs = registry(tmp_path, schema("orders-value", 1, 4, ORDER))
    file = schema_file(tmp_path, '{"type": "object"}', "order.json")

    with pytest.raises(InvalidSchemaError, match="of the type JSON, the versions before are AVRO"):
        planned(logs, file)
    assert new_id(planned(logs, file, compatibility="NONE")) == 5


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        (of_subject("MODE", None, {"mode": "READONLY"}), "the registry is in mode READONLY"),
        (of_subject("MODE", "orders-value", {"mode": "IMPORT"}), "orders-value is in mode IMPORT"),
        (of_subject("CONFIG", "orders-value", {"alias": "o"}), "orders-value stands for o"),
    ],
)
def test_what_a_registry_refuses_is_refused(tmp_path: Path, setting: Record, reason: str) -> None:
    logs = registry(tmp_path, setting)

    with pytest.raises(InvalidSchemaError, match=reason):
        planned(logs, schema_file(tmp_path))


def test_a_subjects_own_mode_comes_first(tmp_path: Path) -> None:
    modes = [
        of_subject("MODE", each, {"mode": mode})
        for each, mode in ((None, "READONLY"), ("orders-value", "READWRITE"))
    ]

    assert new_id(planned(registry(tmp_path, *modes), schema_file(tmp_path))) == 1


def test_contexts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchemaError, match="of a context of its own"):
        planned(tmp_path / "logs", schema_file(tmp_path), subject=":.dev:orders-value")


def test_latest_is_the_last_version_that_is_not_deleted(tmp_path: Path) -> None:
    logs = registry(
        tmp_path,
        schema("orders-value", 1, 4, ORDER),
        schema("orders-value", 2, 5, ORDER_2, deleted=True),
    )

    assert new_id(planned(logs, None)) == 4
    assert new_id(planned(logs, None, version=2)) == 5
    with pytest.raises(NoSchemaError, match="subject orders-value has no version 3 in topic _sch"):
        planned(logs, None, version=3)
    with pytest.raises(NoSchemaError, match="subject x has no version in topic"):
        planned(logs, None, subject="x")


def test_another_registry_is_only_read(tmp_path: Path) -> None:
    other = registry(tmp_path, schema("orders-value", 1, 4, ORDER))
    logs = tmp_path / "written"

    assert new_id(planned(logs, schema_file(tmp_path), registry=other)) == 4
    with pytest.raises(NoSchemaError, match="does not have the schema of the file"):
        planned(logs, schema_file(tmp_path, ORDER_2), registry=other)


def test_key_and_value_are_entered_together(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    files = {
        "key": schema_file(tmp_path, '"long"', "key.avsc"),
        "value": schema_file(tmp_path),
    }

    plan = plan_registration(logs, "orders", files)

    assert entered(logs, plan) == [
        schema("orders-key", 1, 1, '"long"'),
        schema("orders-value", 1, 2, ORDER),
    ]


def test_an_id_that_was_given_meanwhile_is_an_error(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    plan = planned(logs, schema_file(tmp_path))
    entered(logs, planned(logs, schema_file(tmp_path, NAMED), subject="other"))

    with pytest.raises(InvalidSchemaError, match="other schemas were registered in"):
        entered(logs, plan)


def test_a_registry_of_several_partitions_is_refused(tmp_path: Path) -> None:
    logs = registry(tmp_path, schema("orders-value", 1, 4, ORDER))
    write_registry(logs, [schema("orders-value", 2, 5, ORDER_2)], name="_schemas-1")

    with pytest.raises(InvalidSchemaError, match="_schemas has 2 partitions"):
        planned(logs, None)


def test_a_new_schema_goes_into_the_log_that_is_there(tmp_path: Path) -> None:
    logs = registry(tmp_path, schema("orders-value", 1, 4, ORDER))

    records = entered(logs, planned(logs, schema_file(tmp_path, ORDER_2)))

    assert records == [schema("orders-value", 1, 4, ORDER), schema("orders-value", 2, 5, ORDER_2)]


def test_a_schema_is_registered_once(tmp_path: Path) -> None:
    logs, file = tmp_path / "logs", schema_file(tmp_path)

    first = register_schemas(logs, "orders", {"value": file})
    second = register_schemas(logs, "orders", {"value": file})

    assert first == second
    assert len(scan(logs, topics="_schemas").to_table()) == 1


def test_who_holds_the_directory_is_waited_for(tmp_path: Path) -> None:
    logs, file = tmp_path / "logs", schema_file(tmp_path)
    with LogManager([logs]), pytest.raises(LogLockedError):
        register_schemas(logs, "orders", {"value": file}, timeout=0.3)

    manager = LogManager([logs])
    manager.startup()
    threading.Timer(0.3, manager.shutdown).start()
    assert register_schemas(logs, "orders", {"value": file}, timeout=60)["value"].schema.id == 1
