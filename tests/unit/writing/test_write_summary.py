"""What a write job is told is looked at at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.writing.staged_jobs import job_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"job_id": ""}, "job id is ''"),
        ({"batch_id": -1}, "batch_id is -1"),
        ({"topic": "a/b"}, "'a/b' is not a topic name"),
        ({"partitions": 0}, "a topic has 1 to 100000 partitions, not 0"),
        ({"partitions": 100_001}, "a topic has 1 to 100000 partitions, not 100001"),
        ({"compression": "zstd", "level": 99}, "zstd level is 99, expected "),
        ({"compression": "none", "level": 3}, "compression none has no levels, 3 was given"),
        ({"batch_size_bytes": 0}, "batch_size_bytes is 0"),
        ({"fingerprint": "f" * 4_001}, "the fingerprint has 4001 characters, the limit is 4000"),
        ({"bookmark": "up to 1"}, "a bookmark is for a job with a batch_id"),
        ({"topic": "__consumer_offsets"}, "'__consumer_offsets' is one that Kafka keeps for itse"),
    ],
)
def test_an_option_that_is_wrong_is_an_error_at_once(
    tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        job_in(tmp_path, **options)
