"""``pylog mask``: parts of records are replaced, and all offsets stay."""

from __future__ import annotations

from functools import partial
from typing import Any

import pylog
from pylog.cli import options
from pylog.cli.options import command
from pylog.cli.output import read_rules
from pylog.cli.rewriting import rewrite, takes_records


@command(
    "mask",
    "pylog mask /mnt/kafka-logs --mask rules.toml --topic users --dry-run",
    "pylog mask /mnt/kafka-logs --mask rules.toml --key user-7 --look-in /mnt/node2/kafka-logs",
)
@options.writable_directory
@options.file("--mask", required=True, help="The file of rules (TOML).")
@takes_records("something to mask", "changed")
def mask(
    directory: str,
    *,
    mask: str,
    where: pylog.RecordFilter | None,
    **chosen: Any,  # noqa: ANN401 - of `takes_records`
) -> int:
    """Replace parts of records by rules; all offsets stay.

    Rules are tables of a TOML file. cat and export take the same file with --mask:

    \b
      [[mask]]
      topics = ["users"]
      json_path = ["$.email", "$.items[*].iban"]
      replace = "***"
      [[mask]]
      header = ["user-agent"]
      replace = "***"
      [[mask]]
      key = true
      replace = "***"

    A rule has one of json_path, header, key = true and value = true, and holds for all topics if it
    names none. What a JSON path is replaced by may be any JSON value; keys, values and headers are
    replaced by text. Without replace, JSON and headers become null; a key or a value needs it.

    Null stays null. The rest of a JSON value stays as it is written. JSON paths change nothing in a
    value that is not JSON, and a note says so.

    Tests such as --key are the same as in search: only records that pass all of them are masked.
    Batches with such a record are rewritten with the same offsets, producers and timestamps.
    Afterwards the command scans all files of these topics, as erase does, and names those that
    still have something to mask. Mask other replicas in the same way, one stopped broker after the
    other.

    In a terminal the command says how many records it has found, and asks before it changes
    anything; --yes skips the question. With --dry-run nothing is changed or locked.

    Exit status: 0 done, 1 done and something to mask is still somewhere, 2 refused or wrong usage.
    """  # noqa: D301 - click's sign for lines that stay
    masking = read_rules(mask)
    call = partial(pylog.jobs.mask, directory, masking, where=where)
    return rewrite(call, "masked", **chosen)
