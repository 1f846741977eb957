"""The page about findings: what each code of ``pylog doctor`` means, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.findings.kinds import BY_CODE

if TYPE_CHECKING:
    from pylog.findings.finding import FindingKind

PAGE = "docs/doctor-codes.md"

_HEAD = """\
# Codes of findings

These are the findings of `pylog doctor` and table `findings`, the worst first; a finding that
may have several severities is with its worst. [Recover a damaged disk](recover.md) says what
to do with them.

After a clean shutdown (`.kafka_cleanshutdown` is in the log directory), a broker reads no batch.
Otherwise it scans each log from its recovery point.

"""


_PARTS = {
    "error": "## Errors\n\nRecords are lost or cannot be read, or a broker does not start.\n",
    "warning": (
        "## Warnings\n\nSide files and batches disagree, or bytes are where none should be.\n"
    ),
    "info": "## Info\n\nWorth knowing, but not a problem.\n",
}


def finding_page() -> str:
    """Return the page: a section for each code, by its worst severity."""
    parts = []
    for severity, head in _PARTS.items():
        kinds = [each for each in BY_CODE.values() if _worst(each) == severity]
        codes = ", ".join(f"[`{each.code}`](#{each.code})" for each in kinds)
        parts += [f"{head}\n{codes}\n", *map(_section, kinds)]
    return _HEAD + "\n".join(parts)


def _worst(kind: FindingKind) -> str:
    return next(each for each in _PARTS if each in map(str, kind.severities))


def _section(kind: FindingKind) -> str:
    severities = " or ".join(f"**{each}**" for each in kind.severities)
    return (
        f"### {kind.code}\n\n{severities}: {kind.meaning}\n\n"
        f"- A broker: {kind.broker_action}.\n- To do: {kind.advice}.\n"
    )
