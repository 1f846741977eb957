"""How JSON is spelt: the number of its shape, and the names of its members."""

from __future__ import annotations

JSON_SCHEMA_VERSION = 1
"""The first member, ``schemaVersion``, of each JSON document that a command or a job prints.

It is raised when a member goes, or gets another name, type or meaning; not when one is added.
"""


def json_name(name: str) -> str:
    """Return what JSON calls a column of a table: ``firstOffset`` for ``first_offset``.

    Parameters
    ----------
    name
        In snake_case, as columns of metadata tables and names of Python are.
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
