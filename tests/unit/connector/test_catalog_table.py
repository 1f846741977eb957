"""Options of a catalog table, as Spark shows them once and the schema keeps them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_pylog import DefaultSource
from pyspark_pylog.catalog_table import options_of_statement, options_to_read, with_options
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark_pylog.batch_reader import PylogBatchReader


def shown_at_creation(**written: str) -> dict[str, str]:
    """Return what Spark shows at CREATE TABLE (as seen with 4.0.5 and 4.3.0)."""
    location = written.pop("path", None)
    options = {name.lower(): value for name, value in written.items()}
    shown = {"owner": "root", "provider": "pylog", **options}
    shown |= {f"option.{name}": value for name, value in options.items()}
    if location is not None:
        location = f"file:{location}" if location.startswith("/") else location
        shown |= {"path": location, "location": location}
    return shown


def offsets(**metadata: str) -> StructType:
    return StructType([StructField("offset", LongType(), metadata=metadata)])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    batches = [batch_v2([Stored(offset, offset, b"k", b"v")]) for offset in range(4)]
    write_partition(tmp_path, {0: batches[:2], 2: batches[2:]})
    write_partition(tmp_path, {0: batches[:1]}, name="other-0")
    return tmp_path


def created(**written: str) -> StructType:
    """Return the schema of a new table, after the way through the catalog."""
    schema = DefaultSource(CaseInsensitiveDict(shown_at_creation(**written))).schema()
    return StructType.fromJson(json.loads(schema.json()))


def read(schema: StructType, **given: str) -> dict[str, tuple[int, int]]:
    """Return the offsets that a read of a table plans, of each partition."""
    reader: PylogBatchReader = DefaultSource(CaseInsensitiveDict(given)).reader(schema)  # type: ignore[assignment]
    tasks = [task for each in reader.partitions() for task in each.tasks]  # type: ignore[attr-defined]
    return {str(task.topic_partition): (task.start_offset, task.end_offset) for task in tasks}


def test_a_table_is_read_with_the_options_of_its_creation(logs: Path) -> None:
    assert read(created(path=str(logs))) == {"orders-0": (0, 4), "other-0": (0, 1)}
    narrowed = created(path=str(logs), subscribe="orders", startingOffsets='{"orders":2}')
    assert read(narrowed) == {"orders-0": (2, 4)}
    several = created(paths=json.dumps([str(logs / "orders-0"), str(logs / "other-0")]))
    assert len(read(several)) == 2
    assert created(path=str(logs), columns="value,offset").fieldNames() == ["value", "offset"]
    assert read(created(path=str(logs), columns="value,offset", subscribe="other")) == {
        "other-0": (0, 1)
    }


def test_options_of_a_query_come_before_those_of_the_table(logs: Path) -> None:
    schema = created(path=str(logs), subscribe="orders", startingOffsets='{"orders":2}')
    assert read(schema, startingOffsets="earliest") == {"orders-0": (0, 4)}


def test_a_path_of_a_read_leaves_nothing_of_the_table(logs: Path, tmp_path: Path) -> None:
    schema = created(path=str(logs), startingOffsets='{"orders":2}', subscribe="orders")
    assert read(schema, path=str(logs / "other-0")) == {"other-0": (0, 1)}
    assert read(schema, paths=json.dumps([str(logs / "other-0")])) == {"other-0": (0, 1)}


def test_the_format_s_name_may_be_written_in_any_case(logs: Path) -> None:
    shown = {**shown_at_creation(path=str(logs), columns="offset"), "provider": "PyLog"}
    assert DefaultSource(CaseInsensitiveDict(shown)).schema().fieldNames() == ["offset"]


def test_table_properties_are_not_options() -> None:
    shown = {**shown_at_creation(path="/logs", subscribe="a"), "comment": "x", "subscrib": "y"}
    assert options_of_statement(shown) == {"path": "file:/logs", "subscribe": "a"}


def test_an_option_with_a_typing_error_is_refused_at_creation(logs: Path) -> None:
    with pytest.raises(ValueError, match="unknown option 'subscrib'; did you mean 'subscribe'"):
        created(path=str(logs), subscrib="orders")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"path": "s3://KEY:hidden@bucket/logs"}, "option path may hold"),
        ({"paths": '["s3://bucket/logs?secret_key=hidden"]'}, "option path may hold"),
        ({"path": "s3://bucket/logs", "storage.secret_key": "hidden"}, "option storage.secret_key"),
        ({"path": "s3://bucket/logs", "Storage.Session_Token": "hidden"}, "storage.session_token"),
        ({"path": "az://c/logs", "storage.account_key": "hidden"}, "option storage.account_key"),
        ({"path": "/logs", "kafka.ssl.key.password": "hidden"}, "kafka.ssl.key.password .*leave"),
        ({"path": "/logs", "kafka.sasl.jaas.config": "hidden"}, "kafka.sasl.jaas.config .*leave"),
        ({"path": "/logs", "kafka.ssl.keystore.key": "hidden"}, "kafka.ssl.keystore.key .*leave"),
    ],
)
def test_what_may_be_secret_does_not_get_into_a_catalog(
    options: dict[str, str], named: str
) -> None:
    # Not even looked for: none of these stores is asked.
    with pytest.raises(ValueError, match=named) as caught:
        created(**options)
    assert "hidden" not in str(caught.value)


def test_an_option_of_no_kind_is_not_created_either(logs: Path) -> None:
    with pytest.raises(ValueError, match="unknown option 'password'") as caught:
        created(path=str(logs), password="hidden")  # noqa: S106 - to be refused
    assert "hidden" not in str(caught.value)


def test_options_of_clients_are_not_kept_but_for_the_isolation_level(logs: Path) -> None:
    written = {"path": "/logs", "kafka.key.deserializer": "x", "kafka.isolation.level": "y"}
    assert created(path=str(logs), **{"kafka.bootstrap.servers": "host:9092"})
    schema = with_options(offsets(), written)
    assert options_to_read({}, schema) == {"path": "/logs", "kafka.isolation.level": "y"}


@pytest.mark.parametrize("kept", ["no JSON", "[]", '{"path": 1}'])
def test_what_is_not_of_ours_is_an_error(kept: str) -> None:
    schema = offsets(**{"pylog.options": kept})
    with pytest.raises(ValueError, match=r"pylog\.options is 'no JSON'|CREATE TABLE … USING pylog"):
        options_to_read({}, schema)


def test_a_read_without_a_table_is_what_it_is_given() -> None:
    assert options_to_read({"Path": "/x"}, offsets()) == {"Path": "/x"}
