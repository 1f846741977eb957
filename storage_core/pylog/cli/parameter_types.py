"""Texts that the library checks, for it says best what is wrong with them, and shells complete."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

import pylog
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable


class LocationType(click.types.StringParamType):
    """A local path or a URI."""

    def __init__(self, completion: str) -> None:
        self._completion = completion

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell, which knows its files and directories."""
        return [CompletionItem(incomplete, type=self._completion)]


class TopicType(click.types.StringParamType):
    """The name of a topic of the directories that the line names."""

    def __init__(self, *, takes_list: bool = False) -> None:
        self._takes_list = takes_list

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Offer the topics that can be seen at once: no object store is asked."""
        before, comma, name = "", "", incomplete
        if self._takes_list:
            before, comma, name = incomplete.rpartition(",")
        topics: set[str] = set()
        for path in _paths_given(ctx):
            with suppress(LogStorageError, ValueError, OSError):
                topics.update(pylog.open_directory(path).topics)
        return [
            CompletionItem(f"{before}{comma}{topic}")
            for topic in sorted(topics)
            if topic.startswith(name)
        ]


def _paths_given(ctx: click.Context) -> list[str]:
    """Return the local paths among a command's arguments, as far as they have been typed."""
    given = [ctx.params.get("directory"), *(ctx.params.get("paths") or ())]
    # An option without its value, which is what is being completed, keeps click from giving the
    # arguments their names.
    given += ctx.args
    return [path for path in given if path and "://" not in path]


class CodecType(click.types.StringParamType):
    """The name of a compression codec."""

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Offer the codecs that Kafka knows."""
        labels = [codec.label for codec in pylog.CompressionType]
        return [CompletionItem(label) for label in labels if label.startswith(incomplete.lower())]


class TimeType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no arguments there
    """An instant, as milliseconds since 1970-01-01 UTC."""

    name = "time"

    def __init__(self, parse: Callable[[str, int], int]) -> None:
        self._parse = parse

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the milliseconds."""
        try:
            return self._parse(value, int(time.time() * 1000))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class DurationType(click.ParamType):  # type: ignore[type-arg]  # as of TimeType
    """A length of time, such as ``15m``, as milliseconds."""

    name = "duration"

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the milliseconds."""
        if isinstance(value, int):
            return value
        try:
            return pylog.parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DIRECTORY = LocationType("dir")
DURATION = DurationType()
FILE = LocationType("file")
NOW = TimeType(pylog.parse_cleanup_time)
TIME = TimeType(pylog.parse_time)
TOPIC = TopicType()
TOPICS = TopicType(takes_list=True)
