from __future__ import annotations

from tests.structure.finding_kinds import KINDS_MODULE, finding_codes
from tests.unit.structure.made_up import tree_of

KINDS = 'A_GAP = FindingKind("a_gap", "Something is missing.")\n'


def test_a_code_that_is_written_out_is_found() -> None:
    sources = {KINDS_MODULE: KINDS, "pylog.a": "\nif found.code == 'a_gap':\n    pass"}
    (problem,) = finding_codes(tree_of(sources))
    assert (problem.path, problem.line) == ("pylog/a.py", 2)
    assert "the code of a finding is written out: a_gap" in str(problem)


def test_a_kind_that_has_another_name_than_its_code_is_found() -> None:
    (problem,) = finding_codes(tree_of({KINDS_MODULE: KINDS.replace("A_GAP", "GAP")}))
    assert "GAP is of code a_gap" in str(problem)
    assert "Name it A_GAP." in str(problem)


def test_a_kind_that_is_named_and_longer_texts_are_fine() -> None:
    sources = {KINDS_MODULE: KINDS, "pylog.a": "kinds.A_GAP.found('x', 'there is a_gap')"}
    assert not list(finding_codes(tree_of(sources)))
