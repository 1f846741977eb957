"""The fuzz targets: with every input that is kept, and with what some seconds find."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.corpus import CORPUS, archive_of, kept_inputs
from tests.fuzz.process import REPOSITORY, fuzz, reproduce
from tests.fuzz.targets import TARGETS, load

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import HowMany

pytestmark = pytest.mark.fuzz
needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris has wheels for Linux on x86-64 only",
)

SECONDS = 30
MAX_CORPUS_BYTES = 500_000


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_that_are_kept_are_read_rightly(name: str, tmp_path: Path) -> None:
    target = load(name)
    for input_name, data in [*kept_inputs(name), *(("a seed", seed) for seed in target.seeds())]:
        try:
            target.check(data, tmp_path / "input")
        except Exception as error:
            error.add_note(f"input {input_name}: {data!r}")
            raise


def test_each_target_has_a_corpus_and_all_are_small() -> None:
    assert {path.name for path in CORPUS.glob("*.xz")} == {archive_of(t).name for t in TARGETS}
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) <= MAX_CORPUS_BYTES


# As many at once as pytest has workers.
@needs_atheris
@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.thorough(one_in=5)
def test_half_a_minute_finds_nothing(name: str, how_many: HowMany) -> None:
    seconds = how_many(1, SECONDS)
    command = [sys.executable, "-m", "tests.fuzz", "--target", name, "--seconds", str(seconds)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith(f"{name}: ")


@needs_atheris
def test_a_failing_input_is_reported_and_can_be_run_again() -> None:
    news: list[str] = []
    result = fuzz("failing", SECONDS, with_golden=False, say=news.append)
    assert result.status != 0
    (crash,) = result.crashes
    assert crash.read_bytes()[:1] == b"!"
    shown = crash.relative_to(REPOSITORY)
    again = f"    again: python -m tests.fuzz --target failing --reproduce {shown}"
    assert again in result.lines()
    assert reproduce("failing", [crash], news.append) != 0
    assert "it does not like this byte" in news[-1]
