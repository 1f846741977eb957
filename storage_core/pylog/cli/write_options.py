"""The arguments that the commands which change a log directory share: types and help texts."""

from __future__ import annotations

from typing import Annotated

import typer

Directory = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="A log directory (entry of a broker's log.dirs), local and not open in a broker.",
    ),
]

Topic = Annotated[str, typer.Option("--topic", metavar="T", help="The topic's name.")]

Partition = Annotated[
    int, typer.Option("--partition", metavar="N", min=0, help="The partition's number.")
]

AsJson = Annotated[
    bool, typer.Option("--json", help="Print the summary as one JSON document, sizes in bytes.")
]

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print what would go, and change nothing in the directory."),
]
