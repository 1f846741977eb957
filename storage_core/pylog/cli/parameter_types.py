"""Texts that the library checks, for it says best what is wrong with them, and shells complete."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

import pylog


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


DIRECTORY = LocationType("dir")
FILE = LocationType("file")
