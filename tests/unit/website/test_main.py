from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_site_is_built_where_pylog_is_not_installed() -> None:
    program = (
        "import sys; sys.modules['pylog'] = None; sys.argv = ['-', '--help']\n"
        "from tests.website.__main__ import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m tests.website")
