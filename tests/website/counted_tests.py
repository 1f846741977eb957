"""How many test functions there are, and of what kind: for the page about the tests."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# In the order of the page; what each folder of tests/ is for.
KINDS = {
    "unit": "one module each, without Spark and without a broker",
    "golden": "directories that brokers 0.8.2 to 4.3 wrote, against what Kafka's own consumer and "
    "tools said of them",
    "property": "properties that hold for random logs, appends, cuts, damage and look-ups",
    "differential": "random logs that Kafka's own Java classes compact and trim as well",
    "fuzz": "the parsers, with bytes that grow from a corpus",
    "crash": "what every prefix of writes, fsyncs and renames leaves; disks that fail or fill up",
    "kills": "processes that are killed at chosen system calls and at random moments",
    "broker": "real brokers that start on what was written, and that write while it is read",
    "interop": "other clients and Arrow tools that read the same, and are read",
    "remote": "stores: servers of S3, Google and Azure on loopback, and some that fail",
    "arm": "kernels, golden directories and the command line on ARM, by an emulator",
    "spark": "the data source, in batches and streams, and the jobs",
    "e2e": "the installed program, as a user runs it",
    "cookbook": "the recipes of the cookbook, with what they print",
    "notebooks": "the notebooks, from top to bottom",
}


def count_tests(tests: Path) -> dict[str, int]:
    """Return how many test functions each kind has; those that run many cases count once."""
    return {kind: sum(map(_count, sorted((tests / kind).rglob("test_*.py")))) for kind in KINDS}


def count_table(tests: Path) -> str:
    """Return the counts as a table in Markdown, with their sum."""
    counts = count_tests(tests)
    rows = [f"| `tests/{kind}` | {counts[kind]:,} | {KINDS[kind]} |" for kind in KINDS]
    head = ["| folder | test functions | what they do |", "|---|---|---|"]
    return "\n".join([*head, *rows, f"| | {sum(counts.values()):,} | |"])


def _count(file: Path) -> int:
    return sum(1 for _ in _functions(ast.parse(file.read_text(encoding="utf-8"))))


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node
