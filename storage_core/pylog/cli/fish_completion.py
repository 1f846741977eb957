"""Completion in the shell fish, where click's own function cuts everything at a comma."""

from __future__ import annotations

from click.shell_completion import FishComplete


class WholeFishComplete(FishComplete):
    """Gives fish values (``--topic orders,payments``) and descriptions with their commas."""

    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split -m 1 ","'
    )
