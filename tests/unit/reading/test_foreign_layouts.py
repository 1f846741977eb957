"""A directory without Kafka's log, but with one that is like it, is called by its name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT_ID = "oAtiIQ95REujbuzNd_lkLQ"
TOPIC_ID = "Ws0JIqNEQgKIvEP2qBnSiQ"
AIVEN = f"tiered/orders-{TOPIC_ID}/0/00000000000000000023-{SEGMENT_ID}"
LOCAL = f"orders-0-{TOPIC_ID}/00000000000000000023-{SEGMENT_ID}"
REDPANDA = "looks like a segment of Redpanda"
LAYOUTS = {
    "Redpanda": (["redpanda/controller/0_0/0-1-v1.log", "kafka/orders/0_12/23-4-v1.log"], REDPANDA),
    "Redpanda, tiered": (["a1b2c3d4/kafka/orders/0_12/0-99-1048576-4-v1.log.7"], REDPANDA),
    "Aiven": (
        [f"{AIVEN}.indexes", f"{AIVEN}.log", f"{AIVEN}.rsm-manifest"],
        (
            "looks like a segment in Aiven's tiered storage; to read its .log, which must be "
            "neither compressed nor encrypted there, copy it as <topic>-<partition>/<20 digits>.log"
        ),
    ),
    "LocalTieredStorage": (
        [f"{LOCAL}.index", f"{LOCAL}.leader_epoch_checkpoint", f"{LOCAL}.log"],
        "looks like a segment in Kafka's LocalTieredStorage; to read it, copy it as",
    ),
    "Confluent": (
        [f"0/{SEGMENT_ID}/{TOPIC_ID}/0/00000000000000000023_4_v0.segment"],
        "looks like a segment in Confluent's tiered storage; to read it, copy it as",
    ),
}


def refusal(path: Path) -> str:
    with pytest.raises(LogDirectoryError) as caught:
        pylog.open_directory(path)
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_foreign_layout_is_named_from_each_of_its_levels(tmp_path: Path, layout: str) -> None:
    files, looks_like = LAYOUTS[layout]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    directory = (tmp_path / files[-1]).parent
    while directory != tmp_path.parent:
        text = refusal(directory)
        assert text.startswith(f"{directory}: no Kafka log here: neither segment files")
        assert looks_like in text, directory
        directory = directory.parent


@pytest.mark.parametrize(
    "name", ["app-1-v1.txt", "2024-01-02.log", "00000000000000000023.segment", "1-2.log", "v1.log"]
)
def test_other_files_are_called_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).touch()
    assert "looks like" not in refusal(tmp_path)


def test_a_large_tree_is_not_searched_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}" / "more").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path)
    listed = []
    list_one = os.scandir

    def counted_scandir(path: str) -> object:
        listed.append(path)
        return list_one(path)

    monkeypatch.setattr("pylog.files.disk.scandir", counted_scandir)
    assert "looks like" not in refusal(tmp_path)
    assert 1 < len(listed) <= 1 + 100 + 50
