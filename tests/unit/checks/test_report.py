"""The page of `pylog doctor`, and what a notebook shows of its report."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.main import run
from pylog.findings import kinds
from pylog.results import DoctorReport, LogDirectoryReport

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "kafka"
    run(["demo", str(folder)])
    return folder / "damaged"


@pytest.fixture(scope="module")
def report(damaged: Path) -> DoctorReport:
    return pylog.doctor(damaged)


def test_the_page_has_the_verdict_and_every_finding_with_what_to_do(report: DoctorReport) -> None:
    page = unescape(report.html())
    assert all(sentence in page for sentence in report.verdict.reasons)
    for finding in report.findings:
        assert finding.message in page
        assert finding.advice in page
        assert finding.broker_action in page
    codes = re.findall(r"</span> (\w+): (\w+)</h3>", page)
    assert codes[0] == ("error", "damaged_batches")
    assert set(codes) == {(str(each.severity), each.code) for each in report.findings}


def test_the_page_has_each_action_of_a_broker_that_differs() -> None:
    one = kinds.WRONG_INDEX.found("/logs/a", "1 entry", own_action="it <cuts>")
    other = one._replace(path="/logs/b", own_action="it leaves it")
    findings = [one, other, one._replace(path="/logs/c")]
    directory = LogDirectoryReport(
        "/logs", is_clean=True, is_of_a_controller=False, lacks_metadata=False, findings=findings
    )
    page = DoctorReport([], [directory]).html()
    assert "A broker: it &lt;cuts&gt;; or it leaves it. <b>To do:</b>" in page


def test_the_page_shows_what_has_become_of_offsets(report: DoctorReport) -> None:
    card = report.html().partition("<h3>orders-0</h3>")[2].partition("</section>")[0]
    shown = dict(re.findall(r"</i>([a-z ]+)<small>([\d,]+),", card))
    assert shown == {"records": "44", "control records": "3", "damaged": "13"}


def test_the_page_has_a_loss_in_the_colour_of_errors(report: DoctorReport) -> None:
    page = report.html()
    assert re.findall(r'<li style="color:var\(--(\w+)\)"><b>(\d+ records are lost)', page) == [
        ("other", "20 records are lost")
    ]
    card = page.partition("<h3>orders-1</h3>")[2].partition("</section>")[0]
    assert re.findall(r"--(\w+)\)?\"></i>torn off<small>7,", card) == ["other"]


def test_the_page_loads_nothing(report: DoctorReport) -> None:
    page = report.html()
    assert "<script" not in page
    assert re.findall(r"(?:src|href)=", page) == []


def test_what_comes_from_disk_is_escaped() -> None:
    finding = kinds.UNREADABLE.found("/logs/<b>", "a <script> in \x1b[31m its name")
    directory = LogDirectoryReport(
        "/logs", is_clean=True, is_of_a_controller=False, lacks_metadata=False, findings=[finding]
    )
    page = DoctorReport([], [directory]).html().partition("<body>")[2]
    assert "<script>" not in page
    assert "/logs/&lt;b&gt;" in page
    assert "\x1b" not in page


def test_many_places_of_a_kind_are_counted() -> None:
    findings = [
        kinds.MISSING_INDEX.found(f"/logs/t-{number}/0.index", "the file is missing")
        for number in range(1000)
    ]
    directory = LogDirectoryReport(
        "/logs", is_clean=True, is_of_a_controller=False, lacks_metadata=False, findings=findings
    )
    page = DoctorReport([], [directory]).html()
    assert "and 980 more" in page
    assert len(page) < 20_000


def test_the_command_writes_the_page_and_replaces_an_older_one(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "doctor.html"
    target.write_text("old")
    assert run(["doctor", str(damaged), "--html", str(target)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert f"written to {target}" in output.err
    assert target.read_text("utf-8") == pylog.doctor(damaged).html()


def test_a_page_that_cannot_be_written_is_told_before_anything_is_read(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", str(damaged), "--html", str(tmp_path / "gone" / "page.html")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_a_notebook_shows_a_report_and_a_repaired_copy(damaged: Path, tmp_path: Path) -> None:
    copied = pylog.repair_copy(damaged, tmp_path / "copy")
    shown = copied.source._repr_html_()
    assert copied.source.verdict.reasons[0] in shown
    severities = re.findall(r"<td[^>]*>(error|warning|info)</td>", shown)
    assert severities[:4] == ["error", "error", "error", "warning"]
    assert set(severities[4:]) <= {"info"}  # of committed offsets, which grow old
    assert "offsets 15 to 27" in copied._repr_html_()


def test_a_notebook_shows_listings(damaged: Path) -> None:
    intact = damaged.parent / "intact"
    for listing, told in (
        (pylog.groups(intact), "<th>lag</th>"),
        (pylog.transactions(intact), "2 transactions<"),
        (pylog.topics(intact), "invoices-eu"),
        (pylog.list_partitions(intact), "9 partitions"),
        (pylog.stats(intact), "LogStatistics("),
        (pylog.timeline(intact, "orders"), "Timeline of orders"),
    ):
        assert told in listing._repr_html_(), listing


def test_the_timeline_of_several_topics_is_refused(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "orders.html"
    intact = str(damaged.parent / "intact")
    assert run(["stats", intact, "--timeline", str(target)]) == 2
    assert "name it with --topic" in capsys.readouterr().err
    assert run(["stats", intact, "--topic", "orders", "--timeline", str(target)]) == 0
    assert "orders along its offsets" in target.read_text("utf-8")
