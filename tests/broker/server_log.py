"""What a broker says of its logs when something about them is not as it should be."""

from __future__ import annotations

import re

# The broker's own metadata log is always recovered from its last snapshot.
_NOT_OURS = "__cluster_metadata"
_LOGGER_OF_LOGS = re.compile(r"\((?:kafka\.log|org\.apache\.kafka\.storage)\.\S*\)$")
_SEVERE = re.compile(r"\] (?:WARN|ERROR|FATAL) ")
_TROUBLE = re.compile(
    r"Recovering|recovering|[Tt]runcat(?:ing|ed)|[Rr]ebuild(?:ing)? index|[Ss]tray|"
    r"[Uu]nclean ?[Ss]hutdown|UNCLEAN|an unclean election|[Cc]orrupt|not cleanly shut ?down|"
    r"inconsistent|sanity check"
)


def lines_of_logs(server_log: str) -> list[str]:
    """Return the lines that the classes of logs have written, but for the metadata log."""
    return [line for line in _lines(server_log) if _LOGGER_OF_LOGS.search(line)]


def log_lines_of_trouble(server_log: str) -> list[str]:
    """Return what speaks of recovery, damage or a failure."""
    severe = [line for line in lines_of_logs(server_log) if _SEVERE.search(line)]
    return severe + [line for line in _lines(server_log) if _TROUBLE.search(line)]


def _lines(server_log: str) -> list[str]:
    return [line for line in server_log.splitlines() if _NOT_OURS not in line]
