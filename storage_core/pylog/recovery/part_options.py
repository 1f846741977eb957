"""The options of merge, extract and diff that the commands and the jobs on Spark share."""

from __future__ import annotations

from pylog.comparison.diff_summary import DIFF_MODES
from pylog.writing.cleanup import CleanupOption

TRANSACTIONS = ("name", "include", "abort")
"""What extract does with those that its end cuts, the default first."""

_DRY_RUN = CleanupOption("dry-run", None, "Print what would be done, and change nothing.")
_PARTITION = CleanupOption(
    "partition",
    "N",
    "Only this partition of each topic; may be given several times.",
    is_repeated=True,
)
_TO = CleanupOption("to", "DIR", "The log directory to be made; it must not exist, or be empty.")


def _topic(verb: str, default: str = "all") -> CleanupOption:
    text = f"{verb} only this topic; may be given several times. Default: {default}."
    return CleanupOption("topic", "T[,T...]", text, is_repeated=True)


def _by_name(*options: CleanupOption) -> dict[str, CleanupOption]:
    return {each.name: each for each in options}


def merge_options() -> dict[str, CleanupOption]:
    """Return the options of merge, by name.

    Examples
    --------
    >>> list(pylog.jobs.merge_options())[:3]
    ['to', 'topic', 'partition']
    """
    return _by_name(
        _TO,
        _topic("Merge"),
        _PARTITION,
        CleanupOption(
            "metadata",
            "COPY",
            "A log directory with a copy of the cluster's metadata, which says who led last. "
            "Default: those beside the replicas.",
        ),
        CleanupOption(
            "prefer",
            "PATH",
            "Take the history of this PATH where nothing tells which one is the log's.",
        ),
        CleanupOption(
            "until",
            "TIME|OFFSET",
            "End each partition before its first record whose timestamp is TIME or later: an ISO "
            "date or time, or how long before now (-2h, -7d). A whole number is an offset, for all "
            "but internal topics.",
        ),
        CleanupOption(
            "append-markers",
            None,
            "Append the marker of a transaction if only replicas whose history has ended have it.",
            parameter="appends_markers",
        ),
        _DRY_RUN,
    )


def extract_options() -> dict[str, CleanupOption]:
    """Return the options of extract but for the tests of records, by name.

    Examples
    --------
    >>> pylog.jobs.extract_options()["transactions"].choices
    ('name', 'include', 'abort')
    """
    return _by_name(
        _TO,
        _topic("Copy", "all but internal ones"),
        _PARTITION,
        CleanupOption(
            "start-offset",
            "N",
            "First offset of the copy (inclusive), in every partition. Default: the earliest.",
        ),
        CleanupOption(
            "end-offset",
            "N",
            "Offset before which the copy ends (exclusive). Default: the end of the log.",
        ),
        CleanupOption(
            "start-timestamp",
            "TIME",
            "Start at the first record whose timestamp is TIME or later (inclusive): an ISO date "
            "or time, how long before now (-2h, -7d), or milliseconds since 1970-01-01 UTC.",
        ),
        CleanupOption(
            "end-timestamp",
            "TIME",
            "End before the first record whose timestamp is TIME or later (exclusive).",
        ),
        CleanupOption(
            "exact",
            None,
            "Cut batches that the range starts or ends in: they are written anew, with the records "
            "of the range alone. Default: copy them whole.",
            parameter="exact",
        ),
        CleanupOption(
            "transactions",
            None,
            "Transactions that the end cuts: name them (default), copy up to their markers "
            "(include), or append an ABORT marker for each.",
            parameter="transactions",
            choices=TRANSACTIONS,
        ),
        CleanupOption(
            "exclude-producer",
            "ID",
            "Leave out what the producer with this id has written; may be given several times.",
            parameter="exclude_producers",
            is_repeated=True,
        ),
        _DRY_RUN,
    )


def diff_options() -> dict[str, CleanupOption]:
    """Return the options of diff but for those of its output, by name.

    Examples
    --------
    >>> pylog.jobs.diff_options()["as"].choices
    ('auto', 'replicas', 'copies', 'compacted')
    """
    return _by_name(
        _topic("Compare"),
        _PARTITION,
        CleanupOption(
            "as",
            None,
            "replicas: the same offsets, batch for batch. copies: other offsets, matched by key "
            "and value. compacted: the latest value of each key. auto: copies where the ids of the "
            "topics differ, compacted where a cleaner has been, else replicas.",
            parameter="mode",
            choices=DIFF_MODES,
        ),
        CleanupOption(
            "headers",
            None,
            "Compare only batch headers; no checksum is verified.",
            parameter="only_headers",
        ),
        CleanupOption(
            "committed",
            None,
            "Compare replicas only up to the lower of their high watermarks, and of compacted logs "
            "keys without a later record: a follower may lag.",
            parameter="only_committed",
        ),
        CleanupOption(
            "isolation",
            None,
            "Which records of copies and compacted logs count.",
            parameter="isolation",
            choices=("read_uncommitted", "read_committed"),
        ),
    )
