"""Which configurations a process runs, and by which labels each is known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.config_file import placeholders_of, replace_placeholders
from pylog_jobs.job import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog_jobs.config_file import ConfigFile


def find_configs(given: Sequence[str]) -> dict[str, str]:
    """Return the files, and the files ``*.toml`` of folders, each by its name without suffix."""
    found: dict[str, str] = {}
    for each in given:
        path = Path(each)
        for file in _files_of(path) if path.is_dir() else [each]:
            name = Path(file).stem
            if name in found:
                raise UsageError(
                    f"--config {file}: {found[name]} is called {name}, too, and summaries and "
                    "metrics go by the name: rename one of them, or run it by itself"
                )
            found[name] = file
    return found


def split_configs(arguments: argparse.Namespace) -> dict[str, argparse.Namespace]:
    """Return the arguments of the run of each configuration."""
    return {
        name: argparse.Namespace(**{**vars(arguments), "config": [path]})
        for name, path in find_configs(arguments.config).items()
    }


def _files_of(folder: Path) -> list[str]:
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix == ".toml")
    except OSError as error:
        raise UsageError(f"--config {folder}: {error.strerror}") from error
    shown = [str(each) for each in files if not each.name.startswith(".")]
    if not shown:
        raise UsageError(f"--config {folder}: the folder has no *.toml")
    return shown


def labels_of_target(file: ConfigFile, parameters: Mapping[str, str]) -> dict[str, object]:
    """Return directory and topic as far as the file says them, whatever else is wrong in it."""
    target = file.raw.get("target")
    labels: dict[str, object] = {}
    for key in ("directory", "topic"):
        text = target.get(key) if isinstance(target, dict) else None
        if not isinstance(text, str) or not text.strip():
            continue
        try:
            text = replace_placeholders(text, parameters)
            if not placeholders_of(text):
                labels[key] = _location(text) if key == "directory" else text
        except ValueError:
            continue  # the error that `prepare` ends with
    return labels


def _location(text: str) -> str:
    return str(pylog.jobs.absolute_location(text))
