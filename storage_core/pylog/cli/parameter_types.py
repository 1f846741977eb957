"""Texts that the library checks, for it says best what is wrong with them, and shells complete."""

from __future__ import annotations

import datetime as dt
import re
import time
from contextlib import suppress
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

import pylog
from pylog.errors import LogStorageError


class LocationType(click.types.StringParamType):
    """A local path or a URI.

    Parameters
    ----------
    completion
        ``dir`` or ``file``: what the shell offers.
    """

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
    """The name of a topic of the directories that the line names.

    Parameters
    ----------
    takes_list
        Whether it may be several names, with commas between them.
    """

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


_LAST_NOW_MS = 253_402_300_799_999
"""The end of the year 9999, the last time that an ISO date can name."""


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
    """An instant, as milliseconds since 1970-01-01 UTC.

    ``1730999991709`` is such a number, ``2026-11-01`` and ``2026-11-01T12:30:00+01:00`` are in
    ISO 8601 (UTC where no zone is given), and ``-2h`` is that long before now.
    """

    name = "time"

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the milliseconds of an instant; within a millisecond, those of the next one."""
        text = value.strip()
        if text.isascii() and text.isdecimal():
            return int(text)
        if ago := _AGO.fullmatch(text):
            return int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]]
        try:
            instant = dt.datetime.fromisoformat(text)
        except ValueError:
            self._refuse(value, param, ctx)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=dt.UTC)
        return pylog.Timestamp.of(instant).milliseconds

    def _refuse(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> NoReturn:
        self.fail(
            f"{value!r} is not a time: give an ISO date or time (2026-11-01, 2026-11-01T12:30Z), "
            "how long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC",
            param,
            ctx,
        )


class NowType(TimeType):
    """The instant that ages are counted to: one that a calendar has.

    A clock's micro- or nanoseconds, taken for milliseconds, would make all records old enough to
    be removed.
    """

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the milliseconds of an instant up to the year 9999."""
        now_ms = super().convert(value, param, ctx)
        if now_ms > _LAST_NOW_MS:
            self.fail(
                f"{value!r} would be after the year 9999: a number is of milliseconds since "
                "1970-01-01 UTC, not of micro- or nanoseconds",
                param,
                ctx,
            )
        return now_ms


_AGO = re.compile(r"-([0-9]+)([smhdw])", re.ASCII)
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}

DIRECTORY = LocationType("dir")
FILE = LocationType("file")
NOW = NowType()
TIME = TimeType()
TOPIC = TopicType()
TOPICS = TopicType(takes_list=True)
