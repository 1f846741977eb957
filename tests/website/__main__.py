"""``python -m tests.website``: build the documentation site, and fail at any warning.

With ``--draw``, write the drawings of ``docs/`` anew instead.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.website.browser import find_browser, unseen
from tests.website.built_links import broken_links
from tests.website.page_tree import PageTree

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"
# Browsers let a page that they read from a disk start no worker, and the search is one.
_SERVER = "python3 -m http.server -d build/site"
# The list of public names is written once, as a mapping that is not a list of strings.
_EXPECTED = "griffe: Unsupported item in pylog.__all__"


def warnings_of(output: str) -> list[str]:
    """Return the lines of what the generator wrote to stderr that are not expected."""
    lines = [line for line in output.splitlines() if line and not line.startswith(_EXPECTED)]
    return [] if lines == ["No issues found"] else lines


def main() -> int:
    """Build the site; print what is wrong with it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.website", description=__doc__)
    parser.add_argument("--draw", action="store_true", help="write the drawings of docs/")
    if parser.parse_args().draw:
        # They run pylog, which the site's own environment does not have.
        from tests.website.drawings import drawings  # noqa: PLC0415

        for path, text in drawings(ROOT).items():
            (ROOT / path).write_text(text, encoding="utf-8")
        return 0
    PageTree(ROOT, PAGES).write()
    generator = Path(sys.executable).with_name("zensical")
    built = subprocess.run(
        [generator, "build", "--strict", "--clean"],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    problems = warnings_of(built.stderr)
    if built.returncode == 0:
        problems += broken_links(SITE)
        if browser := find_browser():
            problems += unseen(SITE, browser)
        else:
            sys.stdout.write(
                "No Chromium is here, so no page was looked at (apt install chromium).\n"
            )
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    count = len(list(SITE.rglob("*.html")))
    done = f"{count} pages: {SITE}/index.html (searching needs a server: {_SERVER})"
    summary = "The site has problems." if problems else done
    sys.stdout.write(f"{summary}\n")
    return 1 if problems or built.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
