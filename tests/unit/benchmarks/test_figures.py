"""What is published of a benchmark run: from one data file, and never from a busy machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as program
from benchmarks.figures import PUBLISHED, Figures, UnknownFigureError, text_of
from benchmarks.measuring import Figure, Run
from benchmarks.summary import PAGE, charts, published_files, raw_page

if TYPE_CHECKING:
    from benchmarks.data_sets import Bench
    from benchmarks.results import Results

ROOT = Path(__file__).parents[3]
MACHINE = {"cores": 2, "processor": "AMD EPYC", "memory_gib": 24, "system": "Linux", "versions": {}}


@pytest.fixture(scope="module")
def published() -> Figures:
    return Figures.read(ROOT / PUBLISHED)


def test_a_changed_figure_reaches_page_chart_and_readme(tmp_path: Path) -> None:
    data, readme = ((ROOT / each).read_text("utf-8") for each in (PUBLISHED, "README.md"))
    (median,) = re.findall(r"`kafka-dump-log --print-data-log` \| ([\d.]+) s", readme)
    changed, count = re.subn(rf"\[[\d.]+, {float(median)}\]", "[70.11, 71.22]", data)
    assert count == 1
    (tmp_path / "docs").mkdir()
    (tmp_path / PUBLISHED).write_text(changed, "utf-8")
    (tmp_path / "README.md").write_text(readme, "utf-8")
    made = published_files(tmp_path)
    assert "71.22 s" in made["README.md"]
    assert "70.11 / 71.22" in made["docs/benchmark-tables.md"]
    assert ">71.2<" in made["docs/bench-tools-light.svg"]


def test_every_missed_target_is_on_the_page(published: Figures) -> None:
    missed = [each for each in published.document["targets"] if each["met"] is False]
    assert missed
    page = published_files(ROOT)[PAGE]
    rows = page.partition("| target | measured |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [row.replace("\\|", "|").rpartition(" | ")[0] for row in rows] == [
        f"| {each['text']}" for each in missed
    ]
    assert f"misses these {len(missed)}" in page


def test_a_miss_that_rounds_to_its_limit_is_told_in_words(published: Figures) -> None:
    page = published_files(ROOT)[PAGE]
    assert "zstd, 1000 B: ≥ 1.3 times one thread of Kafka's Java classes | just below 1.3 |" in page
    assert "| 1.30 (" not in page


def test_the_page_has_three_charts(published: Figures) -> None:
    assert len(charts(published)) == 3


def test_the_text_of_the_data_is_json_that_reads_back_equal(published: Figures) -> None:
    assert json.loads(text_of(published.document)) == published.document
    assert text_of(published.document) == (ROOT / PUBLISHED).read_text("utf-8")


def test_a_figure_that_is_not_there_is_an_error(published: Figures) -> None:
    with pytest.raises(UnknownFigureError, match="no single figure"):
        published.get("Memory", "peak MiB of draining it", "another row")


def test_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"format": 2}', "utf-8")
    with pytest.raises(ValueError, match="the format is 2, expected 1"):
        Figures.read(tmp_path / "data.json")


@pytest.fixture
def run_with_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Measure one thing only; return where the files go."""

    def measure(results: Results, _bench: Bench, *_arguments: object) -> None:
        results.counts = [Figure("s100-none", 2_000_000, 237_000_000, [Run(0.0125, 0.0125)])]

    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(program, "BUILD", tmp_path / "build")
    monkeypatch.setattr(program, "this_machine", lambda: dict(MACHINE, versions={}))
    monkeypatch.setattr(program, "measure", measure)
    return tmp_path


def test_a_busy_machine_publishes_nothing(
    run_with_load: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "load_average", lambda: [0.6, 0.1])
    monkeypatch.setattr("sys.argv", ["bench", "--publish"])
    assert program.main() == 1
    assert "load average of the last minute is 0.6 on 2 cores" in capsys.readouterr().err
    assert not (run_with_load / PUBLISHED).exists()


def test_a_quiet_run_with_parts_missing_is_kept_but_not_published(
    run_with_load: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run_with_load / "bench.json"
    monkeypatch.setattr(program, "load_average", lambda: [0.5, 0.1])
    monkeypatch.setattr("sys.argv", ["bench", "--publish", "--output", str(output)])
    assert program.main() == 1
    assert "targets were not measured" in capsys.readouterr().err
    assert not (run_with_load / PUBLISHED).exists()
    figures = Figures.read(output)
    assert figures.get("Header-only count", "MB/s of log", "s100-none") == [18960, 18960]
    assert "18,960 / 18,960" in raw_page(figures)


def test_publishing_part_of_a_run_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--publish", "--quick"])
    with pytest.raises(SystemExit):
        program.main()
    assert "--publish needs a whole run" in capsys.readouterr().err


def test_a_run_that_ended_early_is_continued() -> None:
    whole = json.loads((ROOT / PUBLISHED).read_text("utf-8")) | {"left_out": ["no Java"]}
    first, *others = whole["targets"]
    early = whole | {
        "targets": [first, *(each | {"met": None} for each in others)],
        "tables": whole["tables"][:2],
    }
    rest = whole | {
        "targets": [first | {"met": None}, *others],
        "tables": whole["tables"][2:],
    }
    assert program.continued(rest, early) == whole
    with pytest.raises(SystemExit, match="measure all of it again"):
        program.continued(rest | {"date": "2026-11-30"}, early)
