"""The stream reader: offsets of a live directory, batches between them, tasks as of a batch read.

Spark asks one instance for offsets and input partitions, in a process that lives as long as the
query runs; what that instance remembers makes a trigger without anything new cheap, and nothing
else. Another instance, pickled, reads in the tasks. What has to outlive both is in the offsets.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

import pylog
from pylog import LATEST
from pyspark_pylog.batch_reader import (
    TaskPartition,
    arrow_schema,
    check_read_schema,
    read_task_partition,
)
from pyspark_pylog.errors import advice_added
from pyspark_pylog.spark_workarounds.stand_ins import (
    HAS_ADMISSION_CONTROL,
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker
from pyspark_pylog.stream_batches import (
    StreamRanges,
    TriggerDelay,
    find_begins,
    limited_ends,
    report,
)
from pyspark_pylog.stream_offset import INITIAL, StreamOffset, by_topic, is_initial
from pyspark_pylog.task_packing import pack
from pyspark_pylog.typed_columns import ensure_all_typed, typed_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pylog import TopicPartition
    from pylog.jobs import ScanTask
    from pylog.results import FollowedDirectory, FollowedLog
    from pyspark_pylog.options import LoadOptions
    from pyspark_pylog.spark_workarounds.stand_ins import ReadLimit

_OPENING_COST_BYTES = 1 << 20
"""What opening a topic-partition counts for where few records of each are read: a millisecond."""

_OF_LOSS = (
    "start the query again, which says what of its batch is lost; if the driver finds the file, "
    "make the directory visible on this host"
)
_LIMITS_NEED_4_2 = (
    "options maxOffsetsPerTrigger, minOffsetsPerTrigger and maxBytesPerTrigger need Spark 4.2 or "
    "later: earlier versions do not tell a Python data source where a batch starts"
)


class PylogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the directory on the driver, reads on executors."""

    def __init__(self, options: LoadOptions, schema: StructType) -> None:
        check_read_schema(options, schema)
        if options.is_limited and not HAS_ADMISSION_CONTROL:
            raise ValueError(_LIMITS_NEED_4_2)
        self._options = options
        self._typed = typed_records(options)
        if self._typed is not None:  # schemas may be registered while the query runs
            ensure_all_typed(self._typed)
            self._typed = self._typed.following(partial(typed_records, options))
        self._schema = arrow_schema(schema, self._typed)
        self._delay = TriggerDelay(options.min_offsets_per_trigger, options.max_trigger_delay)
        self._followed: FollowedDirectory | None = None
        self._logs: dict[TopicPartition, FollowedLog] = {}
        self._target: dict[TopicPartition, int] | None = None
        self._first_begins: dict[TopicPartition, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch, a constant: Spark keeps it nowhere."""
        return INITIAL

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return whether options limit a trigger; `latestOffset` knows by how much."""
        # Spark passes ReadAllAvailable to a query that runs once, whatever is returned here.
        if not self._options.is_limited:
            return ReadAllAvailable()
        return ReadMaxRows(self._options.max_offsets_per_trigger or 1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take what is there now for all that this run of the query reads."""
        with advice_added(of_loss=_OF_LOSS):
            self._look()
        self._target = {each: log.end_offset for each, log in self._logs.items()}

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return where the next batch ends; ``start`` itself if there is to be none yet."""
        prepare_worker()
        with advice_added(of_loss=_OF_LOSS):
            self._look()
            known: Mapping[TopicPartition, int] | None = None
            if start is None or is_initial(start):
                begins = self._begins_of_query()
                offset = StreamOffset({}, begins=begins)
            else:
                last = StreamOffset.from_json(start)
                found = find_begins(last, self._logs)
                report(found.losses, fail_on_data_loss=self._options.fail_on_data_loss)
                begins, offset = found.offsets, StreamOffset({}, restarts=found.restarts)
                known = None if found.restarts else last.ends
            ends = self._limited(begins, self._available(begins), limit)
        if start is not None and (ends is None or ends == known):
            return start
        ends = {} if ends is None else ends
        return replace(offset, ends=ends, topic_ids=self._topic_ids(ends)).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the latest offsets, as the ``kafka`` source reports them in the progress."""
        if not self._logs:
            return None
        return by_topic({each: log.end_offset for each, log in self._logs.items()})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the input partitions of a batch; small ranges share some."""
        prepare_worker()
        ranges = StreamRanges.between(start, end)
        if ranges.is_empty:
            return []
        options = self._options
        with advice_added(of_loss=_OF_LOSS):
            if not ranges.begins.keys() <= self._logs.keys():
                self._look()  # the batch of another process, or a partition that has gone
            ranges, losses = ranges.clipped(self._logs)
            report(losses, fail_on_data_loss=options.fail_on_data_loss)
            tasks = self._plan(ranges.begins, ranges.ends)
        packing = "true" if options.pack_partitions == "auto" else options.pack_partitions
        groups = pack(
            tasks,
            replace(options, pack_partitions=packing),
            lambda task: task.size_bytes,
            lambda task: task.end_offset - task.start_offset,
            opening_cost_bytes=_OPENING_COST_BYTES,
        )
        return [TaskPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one input partition."""
        return read_task_partition(
            *(partition, self._schema, self._options, self._typed), of_loss=_OF_LOSS
        )

    def _look(self) -> FollowedDirectory:
        options = self._options
        if self._followed is None:
            self._followed = pylog.follow(
                *options.paths,
                **options.choice,
                isolation=options.isolation,
                mode=options.mode,
                include_stray=options.include_stray,
                replica=options.replica,
                use_indexes=options.use_indexes,
            )
        self._logs = self._followed.refresh()
        return self._followed

    def _begins_of_query(self) -> dict[TopicPartition, int]:
        """Return where a new query begins, resolved once."""
        if self._first_begins is None:
            followed = self._followed or self._look()
            self._first_begins = followed.resolve(
                self._options.starting, LATEST, fail_on_data_loss=self._options.fail_on_data_loss
            )
        first = self._first_begins
        return {each: first.get(each, log.log_start_offset) for each, log in self._logs.items()}

    def _available(self, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where partitions end, in a run for what is available now at its target."""
        ends = {each: log.end_offset for each, log in self._logs.items()}
        if self._target is None:
            return ends
        return {
            each: max(min(end, self._target[each]), min(begins[each], end))
            for each, end in ends.items()
            if each in self._target
        }

    def _limited(
        self,
        begins: Mapping[TopicPartition, int],
        ends: dict[TopicPartition, int],
        limit: ReadLimit | None,
    ) -> dict[TopicPartition, int] | None:
        """Return where the batch ends, None if it is to wait for more."""
        options = self._options
        if not options.is_limited or isinstance(limit, ReadAllAvailable):
            return ends
        new_offsets = sum(max(0, end - begins[each]) for each, end in ends.items())
        is_waiting = self._delay.is_waiting(new_offsets, time.monotonic() * 1_000)
        if is_waiting and self._target is None:  # what is available now is read to its end
            return None
        if options.max_offsets_per_trigger is not None:
            ends = limited_ends(options.max_offsets_per_trigger, begins, ends)
        if options.max_bytes_per_trigger is not None:
            grown = {each: end for each, end in ends.items() if end > begins[each]}
            tasks = self._plan({each: begins[each] for each in grown}, grown, is_cut=False)
            ends = {**ends, **pylog.jobs.ends_within_bytes(tasks, options.max_bytes_per_trigger)}
        return ends

    def _plan(
        self,
        begins: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        *,
        is_cut: bool = True,
    ) -> list[ScanTask]:
        """Return the tasks of ranges, one for each partition unless ``is_cut``."""
        if not ends:
            return []
        assign: dict[str, list[int]] = {}
        for topic, partition in ends:
            assign.setdefault(topic, []).append(partition)
        options = self._options
        followed = self._followed or self._look()
        return pylog.scan(
            followed.directory,
            assign=assign,
            start=dict(begins),
            end=dict(ends),
            isolation=options.isolation,
            fail_on_data_loss=options.fail_on_data_loss,
            mode=options.mode,
            max_partition_bytes=options.max_partition_bytes if is_cut else None,
            min_partitions=options.min_partitions if is_cut else None,
            max_records_per_partition=options.max_records_per_partition if is_cut else None,
            use_indexes=options.use_indexes,
        ).plan()

    def _topic_ids(self, ends: Mapping[TopicPartition, int]) -> dict[str, str]:
        ids = {each.topic: self._logs[each].topic_id for each in ends}
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None}
