"""Secrets of an ingest: where they are read, where they may stand, where they are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.job import UsageError
from pylog_jobs.run_window import RunWindow
from pylog_jobs.secret_values import SecretValues
from tests.unit.jobs.ingest_files import (
    DAY,
    JOB_ID,
    RECORD,
    SOURCE,
    SOURCE_OF_JDBC,
    TARGET,
    fingerprint,
    read,
    refusal,
)

if TYPE_CHECKING:
    from pathlib import Path


SECRET_OPTIONS = (
    *("user", "password", "sfPassword", "fs.s3a.access.key", "fs.s3a.secret.key", "url", "uri"),
    *("kafka.sasl.jaas.config", "fs.azure.account.key.x", "kafka.ssl.keystore.password"),
    *("spark.mongodb.read.connection.uri", "fs.azure.sas.container.x", "sessionToken", "apiKey"),
)
SHOWN_OPTIONS = (
    *("partitionColumn", "dbtable", "query", "prepareQuery", "sessionInitStatement", "header"),
    *("lowerBound", "driver", "keytab", "principal", "subscribe", "fs.s3a.endpoint", "nullValue"),
    *("pathGlobFilter", "customSchema", "kafka.bootstrap.servers", "kafka.sasl.mechanism"),
)


@pytest.mark.parametrize("name", [*SECRET_OPTIONS, *SHOWN_OPTIONS])
def test_a_secret_is_for_credentials_and_urls_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PYLOG_TEST_SECRET", "correct horse")
    text = SOURCE + f'options.{name} = "${{env:PYLOG_TEST_SECRET}}"\n' + RECORD + TARGET
    if name in SECRET_OPTIONS:
        assert read(tmp_path, text).source.options[name] == "correct horse"
        return
    assert refusal(tmp_path, text).startswith(
        f"[source]: options.{name} has a secret, and Spark's UI and logs would show it; secrets are"
    )


@pytest.mark.parametrize(
    ("old", "new", "is_the_same"),
    [
        ("db/shop", "db/shop?user=etl&password=hunter2", True),
        ("db/shop", "db/shop?ssl=true&password=hunter2", False),
        ("//db", "//etl:hunter2@db", True),
        ("//db", "//etl@db", True),
        ("postgresql://db/shop", "oracle:thin:etl/hunter2@//db/shop", False),
        ("hunter2", "${env:PYLOG_TEST_SECRET}", True),
        ("db/shop", "db/shop?password=${env:PYLOG_TEST_SECRET}", True),
    ],
)
def test_no_credentials_of_a_url_are_in_a_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, *, is_the_same: bool
) -> None:
    monkeypatch.setenv("PYLOG_TEST_SECRET", "correct horse")
    text = SOURCE_OF_JDBC + RECORD + TARGET + JOB_ID
    changed = text.replace(old, new)
    assert changed != text
    assert (fingerprint(tmp_path, text) == fingerprint(tmp_path, changed)) is is_the_same


def test_a_container_is_no_user(tmp_path: Path) -> None:
    text = SOURCE.replace("/in", "abfss://one@store.dfs.core.windows.net/in") + RECORD + TARGET
    other = text.replace("one@", "two@")
    assert fingerprint(tmp_path, text + JOB_ID) != fingerprint(tmp_path, other + JOB_ID)


def test_secrets_are_read_from_the_environment_and_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOG_TEST_SECRET", "correct horse")
    (tmp_path / "password").write_text("battery staple\n")
    text = SOURCE_OF_JDBC.replace("hunter2", f"${{file:{tmp_path}/password}}").replace(
        '"etl"', '"${env:PYLOG_TEST_SECRET}"'
    )
    (tmp_path / "ingest.toml").write_text(text + RECORD + TARGET)
    file = ConfigFile(str(tmp_path / "ingest.toml"))
    config = read_ingest_config(file, RunWindow.of_day(DAY))
    assert config.source.options["password"] == "battery staple"  # noqa: S105
    assert config.source.options["user"] == "correct horse"
    told = {"a": ["battery staple, correct horse"], "b": 3}
    assert file.secrets.hide(told) == {
        "a": [f"${{file:{tmp_path}/password}}, ${{env:PYLOG_TEST_SECRET}}"],
        "b": 3,
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hunter2", "${env:PYLOG_NOT_SET}", "[source]: options.password: environment variable "),
        ("hunter2", "${file:/nope/pw}", "[source]: options.password: cannot read the secret in /n"),
        ("hunter2", "${env:PYLOG_SHORT}", "[source]: options.password: ${env:PYLOG_SHORT} has 3 c"),
        ("SELECT *", "SELECT '${env:PYLOG_SHORT}'", "[source]: sql has a secret, and Spark's UI"),
        ('"body"', '"${env:PYLOG_SHORT}"', "[record]: value has a secret, and Spark's UI and logs"),
        (
            'dbtable = "orders"',
            'query = "${env:PYLOG_SHORT}"',
            "[source]: options.query has a secret, and Spark's UI and logs would show it",
        ),
    ],
)
def test_a_secret_that_is_not_there_or_would_be_shown_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    monkeypatch.setenv("PYLOG_SHORT", "abc")
    text = SOURCE_OF_JDBC + RECORD + TARGET
    assert refusal(tmp_path, text.replace(old, new)).startswith(message)


def test_a_parameter_puts_no_secret_where_it_would_be_shown(tmp_path: Path) -> None:
    (tmp_path / "eu").write_text("correct horse")
    of_region = f"${{file:{tmp_path}/{{region}}}}"
    text = SOURCE_OF_JDBC + RECORD + TARGET
    window = RunWindow.of_day(DAY, {"region": "eu"})
    with pytest.raises(UsageError, match=r"\[record\]: value has a secret, and Spark's UI"):
        read(tmp_path, text.replace('"body"', f"\"'{of_region}'\""), window)
    found = read(tmp_path, text.replace("hunter2", of_region), window)
    assert found.source.options["password"] == "correct horse"  # noqa: S105


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("${file:/run/{x}}", "../etc/passwd", "has {x}, which is '../etc/passwd': that cannot be"),
        ("${file:/run/{x}}", "..", "that cannot be the name of a secret"),
        ("${env:{x}}", "A}${env:B", "that cannot be the name of a secret"),
        ("{x}", "${env:HOME}", "that cannot be a text that may have secrets"),
        ("a{x}", "${env:HOME}", "that cannot be a part of a longer text"),
    ],
)
def test_a_value_names_no_other_secret(tmp_path: Path, text: str, value: str, message: str) -> None:
    toml = SOURCE_OF_JDBC.replace("hunter2", text) + RECORD + TARGET
    with pytest.raises(UsageError) as caught:
        read(tmp_path, toml, RunWindow.of_day(DAY, {"x": value}))
    assert f"[source]: options.password has {{x}}, which is {value!r}" in str(caught.value)
    assert message in str(caught.value)


def test_a_secret_is_hidden_where_its_blanks_are_stripped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOG_TEST_SECRET", " hunter22 ")
    secrets = SecretValues()
    assert secrets.resolve("a${env:PYLOG_TEST_SECRET}b") == "a hunter22 b"
    told = "no user hunter22 here: password= hunter22 ".strip()
    assert "hunter22" not in secrets.hide(told)
