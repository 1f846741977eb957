"""Commands whose ``--help`` explains their arguments as well as their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class DocumentedArgument(click.Argument):
    """A click argument with a help text and an explicit metavar, which messages call it by."""

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        metavar: str,
        help_text: str,
        **attributes: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(declarations, metavar=metavar, **attributes)
        self.help_record = (metavar, help_text)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the metavar, in brackets if it may be left out, with dots if it repeats."""
        metavar = self.help_record[0]
        return [(metavar if self.required else f"[{metavar}]") + "..." * (self.nargs == -1)]


class DocumentedCommand(click.Command):
    """A command that lists its arguments before its options, and ends its help with examples."""

    examples: Sequence[str] = ()  # lines to be typed into a shell

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each as one line, however long it is: it is to be copied."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both sections; that of the arguments only if there are any."""
        arguments = [each for each in self.params if isinstance(each, DocumentedArgument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([each.help_record for each in arguments])
        super().format_options(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, so that every error knows which command's help to point to."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


def command(name: str, *examples: str) -> Callable[[Callable[..., int]], click.Command]:
    """Return the decorator that makes a command of a function, which returns its exit status.

    ``examples`` are lines for the end of its help.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        made = click.command(name, cls=DocumentedCommand)(function)
        made.examples = examples
        return made

    return decorate


def argument(
    name: str,
    *,
    metavar: str,
    help_text: str,
    **attributes: Any,  # noqa: ANN401 - click's own
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the decorator that gives a command an argument; see `DocumentedArgument`."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        # Made again at each use: click before 8.1.4 forgets the class after the first.
        return click.argument(
            name, cls=DocumentedArgument, metavar=metavar, help_text=help_text, **attributes
        )(function)

    return decorate
