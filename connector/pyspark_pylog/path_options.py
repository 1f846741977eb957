"""The options that say where the logs lie and how a store is reached: path, paths, storage.*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog import absolute_location, location
from pyspark_pylog.json_options import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH_OPTIONS = ("path", "paths")
STORAGE_PREFIX = "storage."
"""Before the name of a parameter of a store: ``storage.region``."""

HOW_TO_CREATE = (
    "In SQL: CREATE TABLE … USING pylog OPTIONS (path '/path/to/kafka-logs'), without a list of "
    "columns, with which Spark keeps no options (option columns chooses some)."
)
INSERT_INTO_VIEW = (
    "Spark keeps no options of a catalog table for what is inserted: INSERT INTO a view, CREATE "
    "TEMPORARY VIEW … USING pylog OPTIONS (path '/path/to/kafka-logs', topic '…')."
)


def parse_paths(lower: Mapping[str, str]) -> tuple[str, ...]:
    """Return absolute locations, from options with lower-cased names; ``ValueError`` if none."""
    texts: list[str] = []
    if "path" in lower:
        texts.append(lower["path"])
    if "paths" in lower:
        listed = parse_json(lower["paths"], "paths", '["/a","/b"]')
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            msg = "option paths is expected to be a JSON list of strings"  # may hold passwords
            raise ValueError(msg)
        texts += listed
    if not texts:
        msg = f'no path: say load("/path/to/kafka-logs"). {HOW_TO_CREATE}'
        raise ValueError(msg)
    parameters = {
        name.removeprefix(STORAGE_PREFIX): text
        for name, text in lower.items()
        if name.startswith(STORAGE_PREFIX)
    }
    # Against the driver's working directory, which an executor does not share.
    return tuple(location(absolute_location(text), storage_options=parameters) for text in texts)
