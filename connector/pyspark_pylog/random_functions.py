"""Functions of SQL whose value depends on which rows were before, or on how rows are split.

What such a function is asked about must not change: where rows are left out, it gives other values
for those that are left, as ``monotonically_increasing_id()`` does.
"""

from __future__ import annotations

import re

_NAMES = (
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "input_file_block_start",
    "input_file_block_length",
    "rand",
    "random",
    "randn",
    "randstr",
    "uniform",
    "shuffle",
    "uuid",
    "identifier",  # names any function
)
_CALL = re.compile(rf"\b(?:{'|'.join(_NAMES)})`?\s*\(", re.IGNORECASE)
_HIDING = re.compile(r"/\*|--|\$\{")
"""A comment between a name and its parenthesis, or a variable, which may hold both."""


def is_random(function: str) -> bool:
    """Whether a function is one of them, or may name one."""
    return function.lower() in _NAMES


def may_be_random(text: str) -> bool:
    """Whether the text of a condition may call one of them."""
    return _CALL.search(text) is not None or _HIDING.search(text) is not None
