"""``pylog erase``: records go, and the offsets of all others stay."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

import pylog
from pylog.cli import options
from pylog.cli.options import command
from pylog.cli.rewriting import rewrite, takes_records


@command(
    "erase",
    "pylog erase /mnt/kafka-logs --topic users --key user-7 --dry-run",
    "pylog erase /mnt/kafka-logs --topic users --key user-7 --look-in /mnt/node2/kafka-logs",
    "pylog erase /mnt/kafka-logs --json-path '$.email=ann@example.org' --yes",
)
@options.writable_directory
@takes_records("such records", "erased")
def erase(
    directory: str,
    *,
    where: pylog.RecordFilter | None,
    **chosen: Any,  # noqa: ANN401 - of `takes_records`
) -> int:
    """Remove the records that match; all others keep their offsets.

    Tests such as --key and --json-path are the same as in search: a record that passes all of them
    is removed. This includes records that files still have below the log start offset, and records
    of aborted transactions. Batches that lose some records are rewritten with the same offsets,
    producers and timestamps. A batch that loses all its records keeps its header. Transaction
    markers stay.

    Afterwards the command scans all files of these topics in DIR: also -stray, -delete and -future
    directories, files with a suffix such as .deleted, and staged files of write jobs. It names each
    file that still has such records, in DIR and in the directories of --look-in. Erase other
    replicas in the same way, one stopped broker after the other. Remote storage, disk snapshots and
    backups are not scanned, and deleted bytes may stay on a disk until they are overwritten.

    In a terminal the command says how many records it has found, and asks before it changes
    anything; --yes skips the question. With --dry-run nothing is changed or locked.

    Exit status: 0 done, 1 done and such records are still somewhere, 2 refused or wrong usage.
    """
    if where is None:
        raise click.UsageError("give what to erase, by a test such as --key or --json-path")
    return rewrite(partial(pylog.jobs.erase, directory, where), "erased", **chosen)
