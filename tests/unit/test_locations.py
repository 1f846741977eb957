"""Locations of stores: advice for schemes that are not read, and parameters that nobody sees."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import pylog
from pylog.locations import join, name_of, parent_of, parse_location, with_parameters


@pytest.mark.parametrize(
    ("uri", "shown", "advice"),
    [
        (
            "s3n://key:pw@bucket/logs",
            "s3n://bucket/logs",
            "use s3:// or s3a:// with the same",
        ),
        ("gcs://bucket/logs", "gcs://bucket/logs", "use gs:// with the same bucket and key"),
        (
            "wasb://box@me.blob.core.windows.net/logs",
            "wasb://box@me.blob.core.windows.net/logs",
            "use abfs://<container>@<account>.dfs.core.windows.net/<path>",
        ),
        (
            "wasbs://box@me.blob.core.windows.net/logs",
            "wasbs://box@me.blob.core.windows.net/logs",
            "use abfss://<container>@<account>.dfs.core.windows.net/<path>",
        ),
        ("dbfs:/mnt/logs", "dbfs:/mnt/logs", "use the local path /dbfs/<path> (or /Volumes/"),
        ("dbfs:///mnt/logs", "dbfs:///mnt/logs", "use the local path /dbfs/<path> (or /Volumes/"),
    ],
)
def test_a_scheme_of_others_comes_with_what_to_use_instead(
    uri: str, shown: str, advice: str
) -> None:
    for read in (pylog.open_directory, pylog.scan, pylog.jobs.absolute_location):
        with pytest.raises(ValueError, match="is not read; ") as caught:
            read(uri)
        assert str(caught.value).startswith(f"path '{shown}': ")
        assert advice in str(caught.value)


def test_parameters_come_into_the_query_and_go_along() -> None:
    place = with_parameters(
        parse_location("s3a://bucket/logs?region=x"),
        {"secret_key": "a/b+c &=%ü", "anonymous": False, "connect_timeout": 2.5, "none": None},
    )
    assert place.partition("?")[2] == (
        "region=x&secret_key=a%2Fb%2Bc%20%26%3D%25%C3%BC&anonymous=false&connect_timeout=2.5"
    )
    below = join(place, "orders-0")
    assert below == place.replace("/logs?", "/logs/orders-0?")
    assert parent_of(below) == place
    assert name_of(below) == "orders-0"
    for text in (str(below), repr(below), f"{below}", repr([below])):
        assert "s3://bucket/logs/orders-0" in text
        assert "secret" not in text
    assert pickle.loads(pickle.dumps(below)) == below  # noqa: S301 - our own


def test_parameters_of_a_local_path_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is local, and storage options") as caught:
        pylog.scan(tmp_path, storage_options={"region": "x", "secret_key": "hidden"})
    assert str(caught.value) == (
        f"path '{tmp_path}' is local, and storage options (region, secret_key) are for stores"
    )


def test_a_parameter_that_is_given_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="region stands in") as caught:
        pylog.location("s3://k:s@b/logs?region=hidden", storage_options={"region": "other"})
    assert str(caught.value) == "region stands in the URI s3://b/logs and in the storage options"


def test_no_options_leave_a_path_as_it_is() -> None:
    assert pylog.location("relative/logs") == "relative/logs"
    assert pylog.location(Path("/logs"), storage_options={}) == "/logs"
    assert pylog.location("file:///logs") == "/logs"


def test_an_open_directory_and_two_ways_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0/00000000000000000000.log").touch()
    directory = pylog.open_directory(tmp_path)
    with pytest.raises(ValueError, match="an open directory has its own"):
        pylog.scan(directory, storage_options={"region": "x"})
    with pytest.raises(TypeError, match=r"filesystem is a str, expected one of pyarrow\.fs"):
        pylog.scan("s3://b/logs", filesystem="s3")
    with pytest.raises(ValueError, match="give either filesystem or storage_options"):
        pylog.location("b/logs", filesystem=object(), storage_options={"region": "x"})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///var/a%20b", "/var/a b"),
        ("file:/var/logs", "/var/logs"),
        ("/var/logs", "/var/logs"),
        ("relative:not-a-uri", "relative:not-a-uri"),
    ],
)
def test_uris_of_files_become_paths(text: str, path: str) -> None:
    assert parse_location(text) == path


@pytest.mark.parametrize(
    ("text", "reason"), [("file://host/logs", "names another host"), (" ", "path is empty")]
)
def test_files_of_other_hosts_and_empty_paths_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_location(text)
