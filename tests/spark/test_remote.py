"""``load()`` of a bucket: the rows of the local copy, and messages without credentials."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from pyspark.errors import PySparkException

import pyspark_pylog
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.s3_server import REGION, Bucket, S3Server
from tests.support.spark_session import NEEDS_SPARK, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

ACCESS_KEY = "AKIAPLANTED000000002"
SECRET = "planted/Secret+abcdef0123456789"  # noqa: S105 - planted, to be looked for
USER_INFO = f"{ACCESS_KEY}:{quote(SECRET, safe='')}"
PLANTED = re.compile(f"{ACCESS_KEY}|Secret(\\+|%2B)abcdef0123456789")


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with S3Server() as server:
        yield Bucket(server, "kafka")


def upload(bucket: Bucket, log_directory: Path, prefix: str) -> str:
    bucket.upload(log_directory, prefix)
    return bucket.uri(prefix, user_info=USER_INFO)


def test_a_bucket_gives_the_rows_of_the_local_copy(
    spark: SparkSession, bucket: Bucket, tmp_path: Path
) -> None:
    segments = {
        first: [batch_v2(plain_records(first + 10 * n, 10)) for n in range(4)] for first in (0, 40)
    }
    for partition in (0, 1):
        write_partition(tmp_path, segments, name=f"orders-{partition}")
    uri = upload(bucket, tmp_path, "sound")
    remote = load(spark, uri.replace("s3://", "s3a://"), isolationLevel="read_committed")
    local = load(spark, tmp_path.as_uri())
    key = ("partition", "offset")
    assert remote.orderBy(*key).collect() == local.orderBy(*key).collect()
    assert remote.count() == 160
    plan = remote._jdf.queryExecution().toString()
    assert "pylog" in plan
    assert not PLANTED.search(plan)
    base, _, query = uri.partition("?")
    assert load(spark, [f"{base}/orders-0?{query}"]).count() == 80


def storage_options(bucket: Bucket, secret: str = SECRET) -> dict[str, str]:
    """Return the options that lead to the server, named as a user of Spark names them."""
    return {
        "storage.access_key": ACCESS_KEY,
        "storage.secret_key": secret,
        "storage.endpoint_override": bucket.endpoint,
        "Storage.Scheme": "http",
        "storage.region": REGION,
    }


def test_storage_options_reach_the_workers_and_no_plan(
    spark: SparkSession, bucket: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    segments = {first: [batch_v2(plain_records(first, 10))] for first in (0, 10)}
    write_partition(tmp_path, segments)
    bucket.upload(tmp_path, "by-option")
    remote = load(spark, "s3://kafka/by-option", **storage_options(bucket))
    assert remote.orderBy("offset").collect() == load(spark, tmp_path).orderBy("offset").collect()
    assert remote.count() == 20
    table = load(spark, "s3://kafka/by-option", table="segments", **storage_options(bucket))
    assert table.count() == 2
    narrowed = pyspark_pylog.table(spark, "s3://kafka/by-option", **storage_options(bucket))
    assert narrowed.where("offset >= 15").count() == 5
    remote.explain(extended=True)
    shown = f"{remote._jdf.queryExecution().toString()} {narrowed!r} {capfd.readouterr()}"
    assert "pylog" in shown
    assert not PLANTED.search(shown)
    with pytest.raises(PySparkException, match="unknown parameter 'regions'") as caught:
        load(spark, "s3://kafka/by-option", **storage_options(bucket), **{"storage.regions": "x"})
    assert not PLANTED.search(str(caught.value))
    with pytest.raises(PySparkException, match="is local, and storage options") as caught:
        load(spark, tmp_path, **storage_options(bucket))
    assert not PLANTED.search(str(caught.value))


@pytest.mark.parametrize("what", ["damaged", "nowhere"])
def test_no_message_of_a_query_shows_a_credential(
    spark: SparkSession,
    bucket: Bucket,
    tmp_path: Path,
    what: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sound = batch_v2(plain_records(0, 10))
    write_partition(tmp_path, {0: [sound, with_bad_crc(batch_v2(plain_records(10, 10)))]})
    uri = upload(bucket, tmp_path, "damaged").replace("/damaged?", f"/{what}?")
    with pytest.raises(PySparkException) as caught:
        load(spark, uri).collect()
    assert f"s3://kafka/{what}" in str(caught.value)
    captured = capfd.readouterr()
    for text in (str(caught.value), repr(caught.value), captured.out, captured.err):
        assert not PLANTED.search(text)
