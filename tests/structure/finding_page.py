"""The page about findings: what each code of ``pylog doctor`` means, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.findings.kinds import BY_CODE

if TYPE_CHECKING:
    from pylog.findings.finding import FindingKind

PAGE = "docs/doctor-codes.md"

_HEAD = """\
# Codes of findings

These are the findings of `pylog doctor` and table `findings`. [Recover a damaged disk](recover.md)
says how to proceed. `make import-graph` generates this page from the code; `make lint` fails
when it is out of date.

An **error** means that records are lost or cannot be read, or that a broker does not start. A
**warning** means that side files and batches disagree, or that bytes are where none should be. An
**info** is worth knowing, but not a problem.

After a clean shutdown (`.kafka_cleanshutdown` is in the log directory), a broker reads no batch.
Otherwise it scans each log from its recovery point.

"""


def finding_page() -> str:
    """Return the page: a section for each code, in the order of the code."""
    return _HEAD + "\n".join(map(_section, BY_CODE.values()))


def _section(kind: FindingKind) -> str:
    severities = " or ".join(f"**{each}**" for each in kind.severities)
    return (
        f"## {kind.code}\n\n{severities}: {kind.meaning}\n\n"
        f"- A broker: {kind.broker_action}.\n- To do: {kind.advice}.\n"
    )
