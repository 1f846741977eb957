"""The project's targets, in the order of the report."""

from benchmarks.log_targets import (
    cleaning_targets,
    commits_targets,
    own_targets,
)
from benchmarks.reader_targets import (
    encoding_targets,
    look_ups_targets,
    memory_targets,
    planning_targets,
    reading_targets,
    remote_targets,
    threads_targets,
)
from benchmarks.results import Results
from benchmarks.spark_targets import (
    following_targets,
    fresh_targets,
    kafka_source_targets,
    pruning_targets,
    small_targets,
    spark_cleaning_targets,
    spark_targets,
    typed_targets,
    writes_targets,
)
from benchmarks.target import Target
from benchmarks.tool_targets import (
    count_targets,
    doctor_targets,
    dumping_targets,
    printing_targets,
    search_targets,
    start_up_targets,
    statistics_targets,
)


def targets(results: Results) -> list[Target]:
    """Return every target of the reader with what this run says of it."""
    parts = (
        reading_targets,
        encoding_targets,
        own_targets,
        cleaning_targets,
        spark_cleaning_targets,
        commits_targets,
        spark_targets,
        count_targets,
        statistics_targets,
        doctor_targets,
        printing_targets,
        dumping_targets,
        search_targets,
        memory_targets,
        threads_targets,
        look_ups_targets,
        planning_targets,
        following_targets,
        pruning_targets,
        small_targets,
        fresh_targets,
        kafka_source_targets,
        typed_targets,
        writes_targets,
        remote_targets,
        start_up_targets,
    )
    return [target for part in parts for target in part(results)]
