"""Runs of ``export``: published whole, found again, and what a crash leaves."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from pylog_jobs.export_output import ExportOutput
from pylog_jobs.job import JobFailedError, UsageError
from pylog_jobs.record_files import Folder
from tests.unit.jobs.export_runs import export_run, publish, staged


def test_a_run_is_found_as_it_was_published(tmp_path: Path) -> None:
    output = ExportOutput(str(tmp_path / "out"))
    assert output.last_run() is None
    with output.owned():
        for number in range(11):  # run=10 comes after run=9, not after run=1
            published = publish(output, number)
    assert published == tmp_path / "out" / "run=10"
    assert ExportOutput(str(tmp_path / "out")).last_run() == export_run(10)
    assert json.loads((published / "_export.json").read_text())["rows"] == 12


def test_rows_and_offsets_appear_in_one_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = ExportOutput(str(tmp_path / "out"))
    seen: list[list[str]] = []
    real = os.fsync

    def look(descriptor: int) -> None:
        seen.append(sorted(each.name for each in (tmp_path / "out").iterdir()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    with output.owned():
        folder, file = staged(output, 0)
        output.publish(folder, export_run(0), [file])
    *before, last = seen
    # Two files and three directories are synced while nobody can see them, then the rename is.
    of_tasks = Path(folder.path).name
    assert len(before) == 5
    assert all(
        name.startswith(("_export.lock", "_staging-0-")) for names in before for name in names
    )
    assert last == sorted(["_export.lock", of_tasks, "run=0"])
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["_export.lock", "run=0"]


def test_directories_have_names_that_spark_reads_as_the_values(tmp_path: Path) -> None:
    values = {"a": "x/y=z%:é", "b": None, "c": ""}
    published = publish(ExportOutput(str(tmp_path)), 0, **values)
    [file] = published.rglob("*.parquet")
    null = "__HIVE_DEFAULT_PARTITION__"
    assert str(file.parent.relative_to(published)) == f"a=x%2Fy%3Dz%25%3Aé/b={null}/c={null}"


def test_what_a_crash_leaves_is_removed_and_its_name_is_not_used_again(tmp_path: Path) -> None:
    output = ExportOutput(str(tmp_path / "out"))
    folder, _ = staged(output, 0)
    with output.owned():
        assert output.last_run() is None
        assert output.remove_leftovers() == [Path(folder.path).name]
        assert not Path(folder.path).exists()
        assert output.new_folder(0) != folder


def test_a_run_that_somebody_else_has_published_is_not_replaced(tmp_path: Path) -> None:
    output = ExportOutput(str(tmp_path / "out"))
    publish(output, 0)
    with pytest.raises(OSError, match="not empty"):
        publish(output, 0)


def test_names_of_what_is_not_published_begin_with_an_underscore(tmp_path: Path) -> None:
    # And hold no "=", or Spark would not pass over them.
    name = Path(ExportOutput(str(tmp_path)).new_folder(3).path).name
    assert name.startswith("_")
    assert "=" not in name


def _own(path: str, is_owned: multiprocessing.synchronize.Event) -> None:
    with ExportOutput(path).owned():
        is_owned.set()
        multiprocessing.get_context("spawn").Event().wait(60)


def test_one_process_exports_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    is_owned = context.Event()
    other = context.Process(target=_own, args=(str(tmp_path), is_owned))
    other.start()
    try:
        assert is_owned.wait(60)
        with (
            pytest.raises(JobFailedError, match=rf"process {other.pid} on host .* is exporting"),
            ExportOutput(str(tmp_path)).owned(),
        ):
            pass
    finally:
        other.kill()
        other.join()
    with ExportOutput(str(tmp_path)).owned():  # whoever is dead owns nothing
        pass


@pytest.mark.parametrize("name", ["run=01", "run=", "data.parquet", "topic=orders"])
def test_a_directory_with_anything_else_in_it_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match=f"holds '{name}', which no export put there"):
        ExportOutput(str(tmp_path))


@pytest.mark.parametrize("path", ["s3a://bucket/out", "hdfs://host/out", "file:///out"])
def test_an_output_in_a_store_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="is published by the rename of a directory"):
        ExportOutput(path)


def test_a_file_as_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="is not a directory"):
        ExportOutput(str(tmp_path / "out"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version":2,"run":0,"isolation":"read_committed","partitions":{},"files":[]}',
        '{"version":1,"run":0,"isolation":"x","partitions":{"t":{"0":{"next":1}}},"files":[]}',
        '{"version":1,"run":0,"isolation":"x","partitions":{"t":7},"files":[]}',
    ],
)
def test_offsets_that_make_no_sense_stop_the_job(tmp_path: Path, text: str) -> None:
    (tmp_path / "run=0").mkdir()
    (tmp_path / "run=0" / "_export.json").write_text(text)
    with pytest.raises(UsageError, match="does not say up to where the run exported"):
        ExportOutput(str(tmp_path)).last_run()


def test_a_run_without_offsets_stops_the_job(tmp_path: Path) -> None:
    (tmp_path / "run=3").mkdir()
    with pytest.raises(UsageError, match=r"run=3/_export\.json does not say .*No such file"):
        ExportOutput(str(tmp_path)).last_run()


def test_a_manifest_of_a_version_before_formats_is_of_parquet_by_topic_and_day(
    tmp_path: Path,
) -> None:
    (tmp_path / "run=0").mkdir()
    text = '{"version":1,"run":0,"isolation":"read_committed","partitions":{},"files":[]}'
    (tmp_path / "run=0" / "_export.json").write_text(text)
    run = ExportOutput(str(tmp_path)).last_run()
    assert run is not None
    assert (run.format, run.partition_by) == ("parquet", ("topic", "date"))


def test_offsets_of_another_run_stop_the_job(tmp_path: Path) -> None:
    (tmp_path / "run=3").mkdir()
    (tmp_path / "run=3" / "_export.json").write_text(export_run(2).to_json())
    with pytest.raises(UsageError, match="is of run 2, expected run 3"):
        ExportOutput(str(tmp_path)).last_run()


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "new"))
    path = tmp_path / "new" / "part-0.csv"
    message = f"No space left on device: '{path}'"
    with pytest.raises(OSError, match=message) as caught, folder.new_file(path.name):
        raise OSError(errno.ENOSPC, "Error writing bytes to file.")  # as Arrow's, without a name
    assert caught.value.errno == errno.ENOSPC
    assert not path.exists()
