"""The warning that option ``subscribePattern`` matches no topic.

As in Spark's ``kafka`` source that is not an error, since a topic may yet come: there are no rows.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog import LogDirectory

_MOST_NAMES = 20
_LOGGER = logging.getLogger(__name__)


def warn_if_no_topic_matches(directory: LogDirectory, pattern: str | None) -> None:
    """Log a warning that names the topics there are, if ``pattern`` is given and matches none."""
    if pattern is None or directory.select(pattern=pattern):
        return
    topics = list(directory.topics)
    names = ", ".join(topics[:_MOST_NAMES])
    if len(topics) > _MOST_NAMES:
        names += f" and {len(topics) - _MOST_NAMES} more"
    _LOGGER.warning(
        "pylog: option subscribePattern is %r, which matches no topic, so there are no rows; "
        "topics found: %s (internal ones are read by subscribe or assign alone)",
        pattern,
        names or "none",
    )
