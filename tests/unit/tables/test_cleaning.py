"""Table ``cleaning``: live and dead records by segment, the dirty ratio, what retention deletes."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.files.durable_io import DurableIO
from pylog.files.high_watermarks import mark_as_own
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.tables.cleaning import find_live_records
from pylog.testing import ManualClock
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    marker,
    message,
    wrapper,
)
from tests.support.damage import flip
from tests.support.log_files import (
    segment_path,
    write_log_start_offsets,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    TOPIC,
    TOPIC_ID_TEXT,
    config_record,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ORDERS = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
_MOST_BYTES_A_RECORD = 500
LIVE_AND_DEAD = ("live_records", "dead_records", "live_bytes", "dead_bytes")


def store_config(directory: Path, **properties: str) -> None:
    """Configure topic orders, as `LogManager.store_topic_config` does."""
    topics = {"orders": {name.replace("_", "."): each for name, each in properties.items()}}
    text = json.dumps({"version": 1, "topics": topics})
    (directory / "pylog-topic-configs.json").write_text(text)


def keyed(offset: int, *keys: str | None, timestamp: int = NOW_MS, **options: Any) -> Built:  # noqa: ANN401 - of batch_v2
    """Return a batch with a record for each key, all of the same length."""
    return batch_v2(
        [
            Stored(offset + place, timestamp, None if key is None else key.encode(), b"v" * 20)
            for place, key in enumerate(keys)
        ],
        **options,
    )


def rows(directory: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of read_table
    mark_as_own(DurableIO(), str(directory))  # all is replicated
    table = pylog.read_table(directory, "cleaning", **options)
    place = table.schema.get_field_index("deletion_time")
    table = table.set_column(place, "deletion_time", table["deletion_time"].cast("int64"))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def columns(found: Sequence[Mapping[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in found]


# ---- live and dead


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    """Give a log of three segments with two keys each, of which only ``d`` is not replaced."""
    segments = {
        0: [keyed(0, "a", "b"), keyed(2, "a", "b")],
        4: [keyed(4, "c", "d"), keyed(6, "a", "c")],
        8: [keyed(8, "a", "b"), keyed(10, "c", "c")],
    }
    write_partition(tmp_path, segments)
    store_config(tmp_path, cleanup_policy="compact")
    return tmp_path


def test_the_last_record_of_a_key_is_live(compacted: Path) -> None:
    size = len(keyed(0, "a", "b").data)
    found = rows(compacted, check_keys=True)
    assert columns(found, "records", "live_records", "dead_records") == [
        (4, 0, 4),
        (4, 1, 3),
        (4, 3, 1),
    ]
    assert [row["live_bytes"] for row in found] == [
        0,
        pytest.approx(size / 2, abs=0.5),
        pytest.approx(size * 3 / 2, abs=0.5),
    ]
    assert [row["live_bytes"] + row["dead_bytes"] for row in found] == [2 * size] * 3


def test_without_keys_headers_do_not_tell(compacted: Path) -> None:
    found = rows(compacted)
    assert columns(found, "records", *LIVE_AND_DEAD) == [(4, None, None, None, None)] * 3


def test_of_a_topic_that_is_not_compacted_headers_tell_all(compacted: Path) -> None:
    store_config(compacted, cleanup_policy="delete")
    write_log_start_offsets(compacted, {ORDERS: 5})
    size = len(keyed(0, "a", "b").data)
    for options in ({}, {"check_keys": True}):
        assert columns(rows(compacted, **options), *LIVE_AND_DEAD) == [
            (0, 4, 0, 2 * size),
            (4, 0, 2 * size, 0),  # the batch at 4 is served in part
            (4, 0, 2 * size, 0),
        ]


def test_keys_below_the_log_start_are_dead(compacted: Path) -> None:
    write_log_start_offsets(compacted, {ORDERS: 6})
    assert columns(rows(compacted, check_keys=True), "live_records", "dead_records") == [
        (0, 4),
        (0, 4),  # d, too
        (3, 1),
    ]


def test_keys_of_a_topic_of_which_nothing_is_known_are_looked_at_if_asked_for(
    compacted: Path,
) -> None:
    (compacted / "pylog-topic-configs.json").unlink()
    assert columns(rows(compacted, check_keys=True), "live_records") == [(0,), (1,), (3,)]
    [row, *_] = rows(compacted)
    names = ("cleanup_policy", "first_dirty_offset", "dirty_ratio", "deletion_reason")
    assert columns([row], *names, "deletion_time", "freed_bytes", *LIVE_AND_DEAD) == [(None,) * 10]
    assert row["records"] == 4


def test_a_key_counts_only_where_its_transaction_was_committed(tmp_path: Path) -> None:
    aborted = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    committed = {**aborted, "producer_id": 2}
    opened = {**aborted, "producer_id": 3}
    batches = [
        keyed(0, "a", "b", "c"),
        keyed(3, "a", **aborted),
        marker(4, ABORT, producer_id=1),
        keyed(5, "b", **committed),
        marker(6, COMMIT, producer_id=2),
        keyed(7, "c", **opened),
        keyed(8, "c"),
    ]
    write_partition(tmp_path, {0: batches})
    [row] = rows(tmp_path, check_keys=True)
    # Live: a and c of the first batch, b, two markers, and all from the open transaction on.
    assert (row["records"], row["live_records"], row["dead_records"]) == (9, 7, 2)
    sizes = [len(each.data) for each in batches]
    assert row["dead_bytes"] == sizes[1] + sizes[0] // 3
    assert row["live_bytes"] == sum(sizes) - row["dead_bytes"]


def test_what_has_no_key_is_dead_and_a_batch_without_records_is_live(tmp_path: Path) -> None:
    batches = [keyed(0, None, None), empty_batch_v2(2, 9), keyed(10, "a")]
    write_partition(tmp_path, {0: batches})
    [row] = rows(tmp_path, check_keys=True)
    assert columns([row], *LIVE_AND_DEAD) == [
        (1, 2, len(batches[1].data) + len(batches[2].data), len(batches[0].data))
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_bytes_of_compressed_batches_are_shared_by_length(tmp_path: Path, codec: str) -> None:
    records = [Stored(0, NOW_MS, b"a", os.urandom(3000)), Stored(1, NOW_MS, b"b", os.urandom(1000))]
    batch = batch_v2(records, codec=codec)
    write_partition(tmp_path, {0: [batch, keyed(2, "a")]})
    [row] = rows(tmp_path, check_keys=True)
    assert row["live_records"] == 2
    assert row["dead_bytes"] == pytest.approx(len(batch.data) * 3 / 4, rel=0.01)


def test_old_formats_are_read_too(tmp_path: Path) -> None:
    first = [message(Stored(place, NOW_MS, b"a", b"v"), magic=place % 2) for place in range(3)]
    second = wrapper(
        [Stored(3, NOW_MS, b"b", b"v"), Stored(4, NOW_MS, b"a", b"v")], magic=1, codec="gzip"
    )
    write_partition(tmp_path, {0: first, 3: [second]})
    assert columns(rows(tmp_path), "records") == [(3,), (None,)]
    found = rows(tmp_path, check_keys=True)
    assert columns(found, "records", "live_records", "dead_records") == [(3, 0, 3), (2, 2, 0)]
    assert columns(found, "live_bytes", "dead_bytes") == [
        (0, sum(len(each.data) for each in first)),
        (len(second.data), 0),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_random_logs_as_a_dictionary_has_them(tmp_path: Path, seed: int) -> None:
    """Also where the map has room for a few keys only, so that shares of them are looked at."""
    chance = random.Random(seed)
    segments: dict[int, list[Built]] = {}
    offset, last, dead = 0, dict[bytes, int](), dict[int, int]()
    bases: dict[int, int] = {}
    for _ in range(chance.randrange(1, 5)):
        base = offset
        segments[base] = []
        for _ in range(chance.randrange(1, 8)):
            records = []
            for _ in range(chance.randrange(1, 20)):
                offset += chance.choice((0, 0, 1, 5))
                key = b"%d" % chance.randrange(60)
                records.append(Stored(offset, NOW_MS, key, chance.randbytes(chance.randrange(50))))
                bases[offset] = base
                if key in last:
                    dead[bases[last[key]]] = dead.get(bases[last[key]], 0) + 1
                last[key] = offset
                offset += 1
            codec = chance.choice(("none", "none", "gzip", "zstd"))
            segments[base].append(batch_v2(records, codec=codec))
    write_partition(tmp_path, segments)
    [view] = pylog.open_directory(tmp_path).select()
    few_keys = 24 * chance.choice((8, 20, 10_000))
    for map_bytes in (few_keys, 1 << 20):
        found = find_live_records(view, map_bytes=map_bytes)
        counts = [len(built.records) for batches in segments.values() for built in batches]
        assert sum(each.records or 0 for each in found) == sum(counts)
        assert [(each.records or 0) - (each.live_records or 0) for each in found] == [
            dead.get(base, 0) for base in segments
        ]
        assert all(each.live_bytes >= 0 for each in found)


@pytest.mark.parametrize("seed", range(10))
def test_what_it_calls_dead_is_what_compaction_removes(tmp_path: Path, seed: int) -> None:
    """Of a log of which nothing is active, with transactions that were aborted and committed."""
    chance = random.Random(seed)
    offset, base = 0, 0
    segments: dict[int, list[Built]] = {0: []}
    for number in range(40):
        count = chance.randrange(1, 6)
        producer = chance.choice((None, 1, 2))
        names = [str(chance.randrange(12)) for _ in range(count)]
        if producer is None:
            segments[base].append(keyed(offset, *names))
            offset += count
        else:
            producing = {"producer_id": 10 * number + producer, "producer_epoch": 0}
            segments[base].append(
                keyed(offset, *names, **producing, base_sequence=0, is_transactional=True)
            )
            kind = chance.choice((ABORT, COMMIT))
            segments[base].append(
                marker(offset + count, kind, producer_id=producing["producer_id"])
            )
            offset += count + 1
        if chance.random() < 0.2:
            base = offset
            segments[base] = []
    segments[offset] = []
    write_partition(tmp_path, segments)
    store_config(tmp_path, cleanup_policy="compact")
    found = rows(tmp_path, check_keys=True)
    [done] = pylog.compact(tmp_path, now_ms=NOW_MS).partitions
    assert done.failure is None
    assert done.records == sum(row["dead_records"] for row in found) > 0
    again = rows(tmp_path, check_keys=True)
    assert sum(row["dead_records"] for row in again) == 0
    assert sum(row["live_records"] for row in again) == sum(row["live_records"] for row in found)


def test_damage_is_an_error_or_left_out(compacted: Path) -> None:
    path = segment_path(compacted / "orders-0", 4)
    flip(path, -1)  # in the last record of offsets 6 and 7
    with pytest.raises(CorruptRecordError, match=r"00000000000000000004\.log"):
        rows(compacted, check_keys=True)
    found = rows(compacted, check_keys=True, mode="DROPMALFORMED")
    assert columns(found, "live_records", "dead_records") == [(0, 4), (1, 1), (3, 1)]


# ---- dirty ratio


def test_the_dirty_ratio_is_that_of_the_log(compacted: Path) -> None:
    write_partition(compacted, {12: [keyed(12, "a")]})
    size = len(keyed(0, "a", "b").data)
    assert (
        columns(rows(compacted), "cleanup_policy", "first_dirty_offset", "dirty_ratio")
        == [(["compact"], 0, 1.0)] * 4
    )
    # The first segment is clean, two can be cleaned, the active one cannot.
    (compacted / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    assert (
        columns(rows(compacted), "first_dirty_offset", "dirty_ratio")
        == [(4, pytest.approx(4 * size / (6 * size)))] * 4
    )


def test_a_checkpoint_outside_the_log_does_not_count(compacted: Path) -> None:
    (compacted / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 99\n")
    assert columns(rows(compacted), "first_dirty_offset", "dirty_ratio") == [(0, 1.0)] * 3


def test_a_young_segment_is_not_dirty_yet(compacted: Path) -> None:
    store_config(compacted, cleanup_policy="compact", min_compaction_lag_ms=str(10**15))
    assert columns(rows(compacted), "dirty_ratio") == [(0.0,)] * 3


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_a_side_file_that_cannot_be_read_is_a_defect_and_hides_nothing_else(
    compacted: Path, mode: str
) -> None:
    (compacted / "cleaner-offset-checkpoint").write_text("0\n7\n")
    found = rows(compacted, mode=mode)
    assert (
        columns(found, "first_dirty_offset", "dirty_ratio", "cleanup_policy")
        == [(None, None, ["compact"])] * 3
    )
    [defect] = found[0]["defects"]
    assert defect.startswith(str(compacted / "cleaner-offset-checkpoint"))
    (compacted / "cleaner-offset-checkpoint").unlink()
    (compacted / "pylog-topic-configs.json").write_text("{")
    found = rows(compacted, mode=mode, check_keys=True)
    assert columns(found, "cleanup_policy", "dirty_ratio") == [(None, None)] * 3
    assert columns(found, "live_records") == [(0,), (1,), (3,)]
    assert ["configurations are not JSON" in str(row["defects"]) for row in found] == [True] * 3


def test_without_the_log_start_nothing_is_said_of_what_is_live_or_deleted(compacted: Path) -> None:
    store_config(compacted, cleanup_policy="delete", retention_ms="1")
    (compacted / "log-start-offset-checkpoint").write_bytes(b"\xff")
    found = rows(compacted)
    assert columns(found, *LIVE_AND_DEAD, "deletion_reason") == [(None,) * 5] * 3
    assert columns(found, "records") == [(4,)] * 3


# ---- retention


def test_an_old_segment_goes_when_its_newest_record_is_too_old(tmp_path: Path) -> None:
    segments = {
        0: [keyed(0, "a", timestamp=NOW_MS + 50), keyed(1, "a", timestamp=NOW_MS)],
        2: [keyed(2, "a", timestamp=NOW_MS + 20)],  # not before the one above
        3: [keyed(3, "a", timestamp=NOW_MS + 90)],
        4: [],
    }
    write_partition(tmp_path, segments)
    store_config(tmp_path, retention_ms="1000")
    size = len(keyed(0, "a").data)
    assert columns(rows(tmp_path), "deletion_reason", "deletion_time", "freed_bytes") == [
        ("retention.ms", NOW_MS + 1051, 2 * size),
        ("retention.ms", NOW_MS + 1051, 3 * size),
        ("retention.ms", NOW_MS + 1091, 4 * size),
        (None, None, None),  # an empty last one stays
    ]


def test_what_goes_by_size_or_log_start_goes_with_the_next_run(tmp_path: Path) -> None:
    segments = {base: [keyed(base, "a")] for base in range(5)}
    write_partition(tmp_path, segments)
    write_log_start_offsets(tmp_path, {ORDERS: 1})
    size = len(keyed(0, "a").data)
    store_config(tmp_path, retention_bytes=str(3 * size), retention_ms="-1")
    assert columns(rows(tmp_path), "deletion_reason", "deletion_time", "freed_bytes") == [
        ("log start offset", None, size),
        ("retention.bytes", None, 2 * size),
        *[(None, None, None)] * 3,
    ]


def test_a_compacted_topic_loses_no_segment_but_those_below_the_log_start(compacted: Path) -> None:
    store_config(compacted, cleanup_policy="compact", retention_ms="1", retention_bytes="0")
    write_log_start_offsets(compacted, {ORDERS: 4})
    reasons = [("log start offset",), (None,), (None,)]
    assert columns(rows(compacted), "deletion_reason") == reasons


def test_the_time_of_the_file_counts_where_no_record_has_one(tmp_path: Path) -> None:
    batch = message(Stored(0, -1, b"a", b"v"), magic=0)
    directory = write_partition(tmp_path, {0: [batch]}, with_time_index=False)
    os.utime(segment_path(directory, 0), (NOW_MS // 1000, NOW_MS // 1000))
    store_config(tmp_path, retention_ms="5000")
    assert columns(rows(tmp_path), "deletion_time") == [(NOW_MS + 5001,)]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.thorough(one_in=3)
def test_what_it_says_is_what_retention_does(tmp_path: Path, seed: int) -> None:
    """At the moment that the table names, and not a millisecond before."""
    chance = random.Random(seed)
    offset = 0
    segments: dict[int, list[Built]] = {}
    for _ in range(6):
        count = chance.randrange(1, 5)
        batches = [
            keyed(offset + place, "a", timestamp=NOW_MS + chance.randrange(10 * DAY_MS))
            for place in range(count)
        ]
        segments[offset] = batches
        offset += count
    write_partition(tmp_path, segments)
    size = len(keyed(0, "a").data)
    store_config(
        tmp_path, retention_ms=str(DAY_MS), retention_bytes=str(chance.randrange(0, 20) * size)
    )
    found = rows(tmp_path)
    times = {row["deletion_time"] for row in found if row["deletion_time"] is not None}
    for now_ms in sorted({NOW_MS, *times, *(each - 1 for each in times)}):
        expected = [
            row["base_offset"]
            for row in found
            if row["deletion_reason"]
            and (row["deletion_time"] is None or row["deletion_time"] <= now_ms)
        ]
        freed = max(
            (row["freed_bytes"] for row in found if row["base_offset"] in expected), default=0
        )
        copy = tmp_path / f"at-{now_ms}"
        copy.mkdir()
        for source in (tmp_path / "orders-0").iterdir():
            (copy / "orders-0").mkdir(exist_ok=True)
            (copy / "orders-0" / source.name).write_bytes(source.read_bytes())
        mark_as_own(DurableIO(), str(copy))
        context = pylog.logs.LogContext(clock=ManualClock(now_ms))
        config = pylog.LogConfig.from_properties(
            json.loads((tmp_path / "pylog-topic-configs.json").read_text())["topics"]["orders"]
        )
        with LogManager([copy], config, context=context) as manager:
            deleted = manager.get_log(ORDERS).delete_old_segments(now_ms)
        assert [each.base_offset for each in deleted] == expected
        assert sum(each.size_bytes for each in deleted) == freed


def test_a_property_that_kafka_does_not_know_is_a_defect(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [keyed(0, "a")]})
    store_config(tmp_path, retention_mss="5")
    [row] = rows(tmp_path)
    assert (row["cleanup_policy"], row["deletion_reason"], row["live_records"]) == (None,) * 3
    assert "configuration of topic 'orders'" in row["defects"][0]


def test_of_internal_topics_no_more_is_known_than_of_others(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [keyed(0, "a")]}, name="__consumer_offsets-0")
    [row] = rows(tmp_path, topics="__consumer_offsets")
    assert row["cleanup_policy"] is None


# ---- options


def test_keys_are_of_this_table_alone(compacted: Path) -> None:
    with pytest.raises(ValueError, match=r"check_keys is for table 'cleaning', table 'segments'"):
        pylog.read_table(compacted, "segments", check_keys=True)


def test_an_empty_log_has_its_one_segment(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: []})
    store_config(tmp_path, cleanup_policy="compact,delete")
    [row] = rows(tmp_path, check_keys=True)
    assert columns([row], *LIVE_AND_DEAD) == [(0, 0, 0, 0)]
    assert (row["dirty_ratio"], row["cleanup_policy"]) == (0.0, ["compact", "delete"])


def broker_directory(root: Path, **configs: str) -> Path:
    """Write a KRaft broker's log directory, whose metadata configure topic orders."""
    old = Stored(0, 1000, b"k", b"v")
    segments = {0: [batch_v2([old])], 1: [batch_v2([old._replace(offset=1)])]}
    write_partition(root, segments, name="orders-0")
    write_topic_id(root / "orders-0", TOPIC_ID_TEXT)
    write_meta_properties(root)
    values = [topic_record("orders"), partition_record(0, 1, (1,))]
    values += [
        config_record(TOPIC, "orders", name.replace("_", "."), text)
        for name, text in configs.items()
    ]
    write_metadata_log(root, values)
    return root


def answers(root: Path, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - of read_table
    row = pylog.read_table(root, "cleaning", topics="orders", **options).to_pylist()[0]
    return {
        name: row[name]
        for name in ("cleanup_policy", "first_dirty_offset", "deletion_reason", "defects")
    }


def properties(root: Path, *lines: str) -> pylog.ServerProperties:
    path = root / "server.properties"
    path.write_text("".join(f"{each}\n" for each in lines))
    return pylog.ServerProperties.read(path)


def test_a_brokers_directory_says_why_a_topic_does_not_shrink(tmp_path: Path) -> None:
    root = broker_directory(tmp_path / "a", cleanup_policy="compact")
    found = answers(root)
    assert (found["cleanup_policy"], found["first_dirty_offset"]) == (["compact"], 0)
    root = broker_directory(tmp_path / "b", cleanup_policy="delete", retention_ms="1")
    assert answers(root)["deletion_reason"] == "retention.ms"
    # Not set for the topic: the broker's file may say it, and only the file tells that it does not.
    root = broker_directory(tmp_path / "c", cleanup_policy="delete")
    assert answers(root) == {
        "cleanup_policy": ["delete"],
        "first_dirty_offset": None,
        "deletion_reason": None,
        "defects": [],
    }
    week = properties(tmp_path, f"log.dirs={root}")
    assert answers(root, server_properties=week)["deletion_reason"] == "retention.ms"
    forever = properties(tmp_path, f"log.dirs={root}", "log.retention.ms=-1")
    assert answers(root, server_properties=forever)["deletion_reason"] is None
    root = broker_directory(tmp_path / "d")
    assert answers(root)["cleanup_policy"] is None
    compacting = properties(tmp_path, f"log.dirs={root}", "log.cleanup.policy=compact")
    assert answers(root, server_properties=compacting)["cleanup_policy"] == ["compact"]


def test_what_a_cluster_says_elsewhere_is_not_known(tmp_path: Path) -> None:
    root = broker_directory(tmp_path / "first", cleanup_policy="compact")
    other = tmp_path / "second"
    other.mkdir()
    (root / "orders-0").rename(other / "orders-0")
    (other / "meta.properties").write_text((root / "meta.properties").read_text())
    alone = properties(tmp_path, f"log.dirs={other}")
    assert answers(other, server_properties=alone)["cleanup_policy"] is None
    both = properties(tmp_path, f"log.dirs={root},{other}")
    assert answers(other, server_properties=both)["cleanup_policy"] == ["compact"]


def test_metadata_that_change_are_read_anew(tmp_path: Path) -> None:
    root = broker_directory(tmp_path / "a", cleanup_policy="compact")
    assert answers(root)["cleanup_policy"] == ["compact"]
    broker_directory(root, cleanup_policy="delete")
    assert answers(root)["cleanup_policy"] == ["delete"]


def test_sql_takes_the_brokers_file(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    root = broker_directory(tmp_path / "a")
    given = properties(tmp_path, f"log.dirs={root}", "log.cleanup.policy=compact")
    query = "SELECT DISTINCT cleanup_policy FROM cleaning"
    for settings, policy in ((None, None), (given, ["compact"])):
        with pylog.duckdb.LogDatabase(root, topics="orders", server_properties=settings) as found:
            assert found.query(query).read_all().to_pylist() == [{"cleanup_policy": policy}]
