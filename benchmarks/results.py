"""Everything one run of the benchmarks measured."""

from dataclasses import dataclass, field

from benchmarks.cleaning import CleaningResult
from benchmarks.encoding import EncodeResult
from benchmarks.following import FollowingFigure
from benchmarks.job_commits import CommitFigure
from benchmarks.measuring import Figure
from benchmarks.memory import MemoryFigure
from benchmarks.owned_logs import OwnResults
from benchmarks.pair_figure import PairFigure
from benchmarks.planning import PlanningFigure
from benchmarks.pruning import PruningFigure
from benchmarks.reading import SetResult
from benchmarks.remote import RemoteFigure
from benchmarks.serving import FirstRecordFigure, ServingFigure
from benchmarks.spark_scan import SparkResult
from benchmarks.spark_write import WriteFigure
from benchmarks.sparse_log import LookUpFigure
from benchmarks.start_up import StartUpFigure
from benchmarks.substitutes import SubstitutesResult
from benchmarks.threads import ThreadsResult


@dataclass(slots=True)
class Results:
    """What was measured; an empty list is a part that was left out, `notes` say why."""

    sets: list[SetResult] = field(default_factory=list)
    spark: list[SparkResult] = field(default_factory=list)
    encoding: list[EncodeResult] = field(default_factory=list)
    own: OwnResults = field(default_factory=OwnResults)
    commits: list[CommitFigure] = field(default_factory=list)
    cleaning: list[CleaningResult] = field(default_factory=list)
    counts: list[Figure] = field(default_factory=list)
    statistics: list[Figure] = field(default_factory=list)
    examined: list[Figure] = field(default_factory=list)
    printing: list[Figure] = field(default_factory=list)
    dumping: list[Figure] = field(default_factory=list)
    searches: list[Figure] = field(default_factory=list)
    memory: list[MemoryFigure] = field(default_factory=list)
    threads: ThreadsResult = field(default_factory=ThreadsResult)
    substitutes: SubstitutesResult = field(default_factory=SubstitutesResult)
    look_ups: list[LookUpFigure] = field(default_factory=list)
    planning: list[PlanningFigure] = field(default_factory=list)
    following: list[FollowingFigure] = field(default_factory=list)
    serving: list[ServingFigure] = field(default_factory=list)
    first_record: FirstRecordFigure | None = None
    pruning: list[PruningFigure] = field(default_factory=list)
    small: list[PairFigure] = field(default_factory=list)
    spark_cleaning: list[PairFigure] = field(default_factory=list)
    kafka_source: list[PairFigure] = field(default_factory=list)
    typed: list[PairFigure] = field(default_factory=list)
    writes: list[WriteFigure] = field(default_factory=list)
    remote: list[RemoteFigure] = field(default_factory=list)
    start_up: list[StartUpFigure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
