"""Options that a job shares with the command of its name, from the table that both read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    import pylog


def add_options(
    parser: argparse.ArgumentParser, options: Mapping[str, pylog.jobs.CleanupOption]
) -> None:
    """Add the options of a table."""
    for each in options.values():
        settings: dict[str, Any] = {"help": each.help.replace("%", "%%")}
        if each.choices:
            settings |= {"choices": each.choices, "default": each.choices[0]}
        elif each.metavar is None:
            settings["action"] = "store_true"
        else:
            settings["metavar"] = each.metavar
            if each.is_number:
                settings["type"] = _whole_number
        if each.is_repeated:
            settings |= {"action": "append", "default": []}
        if each.name == "to":
            settings["required"] = True
        parser.add_argument(f"--{each.name}", **settings)


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        msg = f"{text!r} is not a whole number"
        raise ValueError(msg)
    return int(text)


def passed_on(
    arguments: argparse.Namespace, options: Mapping[str, pylog.jobs.CleanupOption]
) -> dict[str, Any]:
    """Return the arguments of the library's function that get values of options as they are."""
    given = vars(arguments)
    return {
        each.parameter: given[each.name.replace("-", "_")]
        for each in options.values()
        if each.parameter is not None
    }
