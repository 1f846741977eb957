"""Which configurations run, and what is known of one that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pylog_jobs.config_file import ConfigFile
from pylog_jobs.config_list import find_configs, labels_of_target
from pylog_jobs.ingest import JOB
from pylog_jobs.job import UsageError

STREAM = """
[source]
format = "rate"
[record]
value_format = "json"
[target]
directory = "/data/logs"
topic = "ticks"
[trigger]
kind = "interval"
checkpoint = "/data/checkpoint"
"""


def test_files_come_in_their_order_and_those_of_a_folder_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    for name in ("b.toml", "a.toml", "notes.txt", ".c.toml", "d.toml~"):
        (folder / name).touch()
    found = find_configs(["z.toml", str(folder)])
    assert list(found.items()) == [
        ("z", "z.toml"),
        ("a", str(folder / "a.toml")),
        ("b", str(folder / "b.toml")),
    ]


def test_a_folder_without_one_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the folder has no \*\.toml"):
        find_configs([str(tmp_path)])
    with pytest.raises(UsageError, match=r"--config b/x\.toml: a/x\.toml is called x, too"):
        find_configs(["a/x.toml", "b/x.toml"])


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('directory = "/logs"\ntopic = "a"\nlevel = "x"', {"directory": "/logs", "topic": "a"}),
        ('directory = "/logs/{region}"\ntopic = "a-{date}"', {"topic": "a-2026-11-22"}),
        ('directory = "logs/"', {"directory": str(Path("logs").absolute())}),
        ('directory = 3\ntopic = ""', {}),
        ('directory = 3\ntopic = "a"', {"topic": "a"}),
    ],
)
def test_directory_and_topic_are_known_as_far_as_they_can_be_read(
    tmp_path: Path, text: str, labels: dict[str, str]
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f"[target]\n{text}\n")
    assert labels_of_target(ConfigFile(str(path)), {"date": "2026-11-22"}) == labels


def test_a_configuration_that_is_wrong_is_told_with_its_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text('[source]\nformt = "csv"\n[target]\ndirectory = "/data/logs"\ntopic = "t"\n')
    two.write_text("[target\n")
    metrics = tmp_path / "{name}.prom"
    given = ["--config", str(one), str(two), "--metrics-file", str(metrics)]
    assert JOB.main(given) == 2
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["name"], first["directory"], first["topic"]) == ("one", "/data/logs", "t")
    assert (second["name"], "topic" in second) == ("two", False)
    labels = '{job="ingest",name="one",directory="/data/logs",topic="t"}'
    assert f"pylog_job_exit_status{labels} 2\n" in (tmp_path / "one.prom").read_text()


def test_a_stream_that_never_ends_is_refused_among_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, other = tmp_path / "stream.toml", tmp_path / "other.toml"
    stream.write_text(STREAM)
    other.write_text("[source]\n")
    assert JOB.main(["--config", str(stream), "--config", str(other)]) == 2
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert 'stream.toml: [trigger]: kind = "interval" never ends' in first["error"]
