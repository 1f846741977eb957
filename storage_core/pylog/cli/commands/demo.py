"""``pylog demo``: sample log directories to try the other commands on."""

from __future__ import annotations

import shlex
import tarfile
from pathlib import Path

from pylog.cli import exit_status
from pylog.cli.options import DIRECTORY, argument, command
from pylog.cli.output import write_summary

ARCHIVE = Path(__file__).with_name("demo.tar.gz")
INTACT, DAMAGED = "intact", "damaged"
"""The directories in the archive."""


@command("demo", "pylog demo kafka-demo")
@argument(
    "directory",
    metavar="DIR",
    type=DIRECTORY,
    help_text="Where to unpack. It does not exist yet, or is empty.",
)
def demo(directory: str) -> int:
    """Unpack two sample log directories to try pylog on.

    DIR/intact is the log directory of a small Kafka 4.3 broker in KRaft mode. DIR/damaged is the
    same directory after a crash and a disk error. Both come with pylog: no network is needed.
    Writing commands may change them; unpack them again to start over.

    Exit status: 0 unpacked, 2 wrong usage, DIR is not empty, or it cannot be written.
    """
    if "://" in directory:
        raise ValueError(f"{directory}: only a local directory can be written to")
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise ValueError(f"{target}: the directory is not empty: name one that does not exist")
    try:
        with tarfile.open(ARCHIVE) as archive:
            # It is our own. Pythons before 3.11.4 know no filter by name.
            archive.extraction_filter = lambda member, _: member
            archive.extractall(target)  # noqa: S202
    except BaseException as error:  # Ctrl-C among them
        error.add_note(f"{target} is incomplete: remove it")
        raise
    intact, damaged = target / INTACT, target / DAMAGED
    shown = shlex.quote(str(intact))
    has = "a Kafka 4.3 broker's log directory, with the topics orders and invoices-eu"
    lines = (
        f"{intact}: {has}, consumer groups, transactions and the cluster's metadata",
        f"{damaged}: the same with a flipped bit, a missing index, a torn tail, an old checkpoint",
        "",
        "Try:",
    )
    commands = (
        f"  pylog ls {shown}",
        f"  pylog search {shown} --json-path '$.status=returned' --json-path '$.currency=JPY'",
        f"  pylog doctor {shlex.quote(str(damaged))}",
    )
    write_summary({}, lines, as_json=False, copied=commands)
    return exit_status.SOUND
