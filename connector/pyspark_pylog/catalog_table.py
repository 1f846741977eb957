"""The options of a table in Spark's catalog, which Spark itself forgets.

``CREATE TABLE … USING pylog OPTIONS (…)`` shows a Python data source the options once, when it asks
for the schema. Whatever reads the table later gets no options, but the schema that the source gave
then, metadata of columns included. So the options are kept there, in those of the first column.

Source: V2SessionCatalog, PythonDataSourceV2, PythonScanBuilder (Spark 4.0 to 4.3).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from pyspark_pylog.option_values import parse_json
from pyspark_pylog.options import (
    CLIENT_ISOLATION,
    CLIENT_PREFIX,
    HOW_TO_CREATE,
    PATH_OPTIONS,
    parse_paths,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT = "pylog.options"
"""The member of a column's metadata."""

_OPTION = "option."
_PROVIDER = "provider"
"""What Spark adds to the options of a CREATE TABLE, besides ``owner`` and ``location``; it repeats
each option as ``option.<name>``, which tells them from table properties."""

_SECRET_OF_CLIENTS = re.compile(r"password|passphrase|secret|jaas|token|credential|\.key$")
"""What the names of Kafka's options of type PASSWORD have in them, and a few more."""


def is_created(given: Mapping[str, str]) -> bool:
    """Return whether Spark passes these options at a CREATE TABLE."""
    lower = {name.lower(): value for name, value in given.items()}
    return lower.get(_PROVIDER, "").lower() == "pylog"


def options_of_statement(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a user wrote in a CREATE TABLE, by lower-cased names."""
    lower = {name.lower(): value for name, value in given.items()}
    written = {
        name.removeprefix(_OPTION): value
        for name, value in lower.items()
        if name.startswith(_OPTION)
    }
    return {**written, **({"path": lower["path"]} if "path" in lower else {})}


def _is_of_clients(name: str) -> bool:
    """Whether an option is one of Kafka's clients, which has no effect here."""
    return name.startswith(CLIENT_PREFIX) and name != CLIENT_ISOLATION


def ensure_no_secrets(written: Mapping[str, str]) -> None:
    """Raise for options that must not stand in a catalog, since all who use it can read them.

    Spark puts every option of the statement there, also those that are not kept in the schema.
    """
    why = "may hold a password or a key, which a catalog would show to all who use it"
    for name in written:
        if _is_of_clients(name) and _SECRET_OF_CLIENTS.search(name):
            msg = f"option {name} {why}; leave it out: options of Kafka's clients mean nothing here"
            raise ValueError(msg)
    hidden = [
        name
        for name in written
        if "." in name and name != CLIENT_ISOLATION and not _is_of_clients(name)
    ]
    if any(str(path) != "".join(path) for path in parse_paths(written)):
        hidden.append("path")
    if hidden:
        raise ValueError(
            f"option {hidden[0]} {why}; let the environment of Spark's Python workers give it, or "
            "use CREATE TEMPORARY VIEW … USING pylog OPTIONS (…)"
        )


def with_options(schema: StructType, written: Mapping[str, str]) -> StructType:
    """Return ``schema`` with the options of its table, without those that have no effect here."""
    kept = {name: value for name, value in written.items() if not _is_of_clients(name)}
    first, *others = schema.fields
    metadata = {**first.metadata, _KEPT: json.dumps(kept, sort_keys=True)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_to_read(given: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a read: ``given``, and those of the table that has no path there."""
    lower = {name.lower(): value for name, value in given.items()}
    kept = [field.metadata[_KEPT] for field in schema.fields if _KEPT in (field.metadata or {})]
    if not kept or any(name in lower for name in PATH_OPTIONS):
        return dict(given)
    try:
        options = parse_json(kept[0], '{"path": "/mnt/kafka-logs"}')
    except ValueError:
        options = None
    if isinstance(options, dict) and all(isinstance(each, str) for each in options.values()):
        return {**options, **lower}
    raise ValueError(f"the table's options are not kept in its schema. {HOW_TO_CREATE}")
