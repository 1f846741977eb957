"""What retention and compaction have in common: the options of a run, and what comes of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from pylog.files.high_watermarks import HIGH_WATERMARKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog.config.config_property import ConfigEntry
    from pylog.model import TopicPartition


class _Partition(Protocol):
    @property
    def topic_partition(self) -> TopicPartition: ...


_PartitionT = TypeVar("_PartitionT", bound=_Partition)
_TotalsT = TypeVar("_TotalsT")


@dataclass(frozen=True, slots=True)
class CleanupSummary(Generic[_PartitionT, _TotalsT]):
    """What a cleanup does to a log directory; those of one kind say how partitions add up."""

    json_names: ClassVar[Mapping[str, str | None]]
    """What JSON calls attributes of partitions and totals, where another name says more."""
    partitions: tuple[_PartitionT, ...]
    now_ms: int
    is_dry_run: bool
    configs: Mapping[str, Sequence[ConfigEntry]] = field(default_factory=dict)

    @staticmethod
    def _added_up(partitions: Sequence[_PartitionT]) -> _TotalsT:
        raise NotImplementedError

    @property
    def totals(self) -> _TotalsT:
        """The totals over all partitions."""
        return self._added_up(self.partitions)

    @property
    def by_topic(self) -> dict[str, _TotalsT]:
        """The totals of each topic, sorted by name."""
        topics: defaultdict[str, list[_PartitionT]] = defaultdict(list)
        for each in self.partitions:
            topics[each.topic_partition.topic].append(each)
        return {topic: self._added_up(each) for topic, each in sorted(topics.items())}


class CleanupOption(NamedTuple):
    """An option that a command and a job share, whatever parses their arguments.

    Attributes
    ----------
    name, metavar
        The option without its dashes, and what its value is called; no value without a metavar or
        choices.
    help
        What it does, in whole sentences.
    choices
        The values that it may have, the default first; any if there are none.
    is_repeated
        Whether it may be given several times.
    parameter
        The argument of the library's function that gets its value as it is; None where a command or
        a job makes something else of it.
    """

    name: str
    metavar: str | None
    help: str
    choices: tuple[str, ...] = ()
    is_repeated: bool = False
    parameter: str | None = None

    @property
    def is_number(self) -> bool:
        """Whether its value is a whole number."""
        return self.metavar in ("N", "ID")


def cleanup_options(
    *, topics: str = "all", counted: str = "ages", once: str = ""
) -> dict[str, CleanupOption]:
    """Return the options that retention and compaction share, by name, in the order of help.

    Parameters
    ----------
    topics
        Which topics are meant where none is named.
    counted
        What is counted to the time that may be given.
    once
        What one pass is.

    Examples
    --------
    >>> list(pylog.jobs.cleanup_options())[:3]
    ['topic', 'server-properties', 'config']
    """
    options = (
        CleanupOption(
            "topic",
            "T[,T...]",
            f"Only these topics; may be given several times. Default: {topics}.",
            is_repeated=True,
        ),
        CleanupOption(
            "server-properties",
            "FILE",
            "A broker's server.properties, for what it says of topics that have no properties of "
            "their own. Default: Kafka's defaults.",
        ),
        CleanupOption(
            "config",
            "KEY=VALUE",
            "A topic property, such as cleanup.policy=compact; may be given several times.",
            is_repeated=True,
        ),
        CleanupOption(
            "now",
            "TIME",
            f"Count {counted} to this time: an ISO date or time (2026-11-27, UTC unless it names a "
            "zone), how long before now (-2h), or milliseconds since 1970-01-01 UTC. Default: now.",
        ),
        CleanupOption(
            "high-watermark",
            None,
            "Up to where records count as replicated. checkpoint: as on a broker, by "
            "replication-offset-checkpoint, and up to the log's end where this node is the only "
            "replica. log-end: all of them; for a directory whose cluster is gone.",
            parameter="high_watermark",
            choices=HIGH_WATERMARKS,
        ),
        CleanupOption(
            "recover-as-broker",
            None,
            "Recover damaged logs as a broker does, which drops intact records after the damage. "
            "Without this, such a log stays as it is.",
            parameter="recover_as_broker",
        ),
        CleanupOption("once", None, once, parameter="once"),
        CleanupOption(
            "dry-run", None, "Print what would be done, and change nothing.", parameter="dry_run"
        ),
    )
    return {each.name: each for each in options}
