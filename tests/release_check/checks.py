"""What has to be true of the distributions, and of the changelog, before a release."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from pylog.native.library import SYMBOL_PREFIX
from tests.release_check.mach_o import ARM, OF_THE_LINKER, OF_THE_LOADER, SYSTEM_LIBRARY
from tests.release_check.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tests.release_check.distribution import Distribution
    from tests.release_check.mach_o import MachO

PACKAGES = ("pylog", "pyspark_pylog", "pylog_jobs")
LICENCES = ("LICENSE", "NOTICE")
LEFT_OUT = ("tests/golden/cases/", "tests/fuzz/corpus/")
"""What the sdist does not have of the repository: large, and of use in a clone alone."""

_CALLED = {"memcpy", "memmove", "memset", "pread", "bzero", "__bzero"}
"""What kernels may call of the C library; memset is bzero there where it sets zeros."""
_PLACEHOLDER = "example.org"
_GENERATED = {"PKG-INFO"}  # made by the build


def metadata_problems(distribution: Distribution, version: str) -> Iterator[Problem]:
    """Check version, licences and addresses."""
    name, metadata = distribution.name, distribution.metadata
    if str(metadata.version) != version:
        yield Problem(
            f"{name} has version {metadata.version}, and pylog.__version__ is {version}",
            "remove dist/ and build/, and look at tool.hatch.version in pyproject.toml",
        )
    for licence in LICENCES:
        named = licence in (metadata.license_files or ())
        if not named or not any(_is_licence(path, licence) for path in distribution.digests):
            yield Problem(
                f"{name} lacks {licence}", "name it in project.license-files of pyproject.toml"
            )
    urls = metadata.project_urls or {}
    made_up = [label for label, url in urls.items() if _PLACEHOLDER in url]
    if made_up or not urls:
        yield Problem(
            f"{name} has no real address for {', '.join(made_up) or 'anything'}",
            "set project.urls before a release: pyproject.toml has them",
            is_warning=True,
        )


def _is_licence(path: str, licence: str) -> bool:
    return path == licence or path.endswith(f".dist-info/licenses/{licence}")


def description_problems(distribution: Distribution) -> Iterator[Problem]:
    """Check the long description: Markdown that begins with a heading, and whole addresses."""
    name, metadata = distribution.name, distribution.metadata
    text = metadata.description or ""
    if metadata.description_content_type != "text/markdown" or not text.strip():
        yield Problem(
            f"{name} has no description in Markdown",
            "see hatch_build.py, which makes it of README.md",
        )
        return
    tokens = MarkdownIt("commonmark").parse(text)
    if tokens[0].tag != "h1":
        yield Problem(f"the description of {name} begins with no heading", "see README.md")
    for token in tokens:
        for child in token.children or ():
            target = str(child.attrGet("href") or child.attrGet("src") or "")
            if target and not re.match(r"https?://|#", target):
                yield Problem(
                    f"the description of {name} links to {target}, which an index does not have",
                    "see hatch_build.py, which makes links absolute",
                )


def wheel_problems(wheel: Distribution, modules: Collection[str]) -> Iterator[Problem]:
    """Check that a wheel has ``modules``, which are all of ours, and nothing else to import."""
    there = {path for path in wheel.digests if path.partition("/")[0] in PACKAGES}
    places = {path.partition("/")[0] for path in wheel.digests}
    for path in sorted(set(modules) - there):
        yield Problem(f"{wheel.name} lacks {path}", "see tool.hatch.build.targets.wheel")
    for path in sorted(there - set(modules)):
        yield Problem(f"{wheel.name} has {path}, which git does not know", "add or remove it")
    for place in sorted(places - set(PACKAGES)):
        if not place.endswith((".dist-info", ".data")):
            yield Problem(f"{wheel.name} would install {place}", "keep it out of the wheel")
    if not any(path.endswith(".data/data/share/man/man1/pylog.1") for path in wheel.digests):
        yield Problem(f"{wheel.name} lacks the manual pages", "see shared-data in pyproject.toml")


def macos_problems(name: str, library: MachO, kernels: Collection[str]) -> Iterator[Problem]:
    """Check that macOS would load a library, and that it has the kernels and nothing else."""
    advice = "see PLATFORMS in pylog.kernel_compilation; macOS would refuse it"
    named = {f"{SYMBOL_PREFIX}{kernel}" for kernel in kernels}
    facts = {
        "is no shared library": not library.is_library,
        f"loads {', '.join(library.loads) or 'nothing'}": library.loads != [SYSTEM_LIBRARY],
        "says where libraries are": library.has_run_path,
        "has code that may be written": library.has_writable_code,
        f"has the signature {library.signature!r}": library.signature
        != ("ad hoc" if library.processor == ARM else ""),
        "needs macOS {}.{}".format(*library.oldest_system): library.oldest_system
        != ((11, 0) if library.processor == ARM else (10, 15)),
    }
    facts |= {f"lacks {each}": True for each in sorted(named - library.exports)}
    facts |= {f"has {each}": True for each in sorted(library.exports - named - OF_THE_LINKER)}
    facts |= {f"calls {each}": True for each in sorted(library.imports - _CALLED - OF_THE_LOADER)}
    for what, is_wrong in facts.items():
        if is_wrong:
            yield Problem(f"{name} {what}", advice)


def linux_problems(name: str, shown: str) -> Iterator[Problem]:
    """Check what ``auditwheel show`` says of a wheel: it needs no library, of no version."""
    text = " ".join(shown.split())
    for phrase in (
        "references no external versioned symbols",
        "requires no external shared libraries",
    ):
        if phrase not in text:
            yield Problem(f"{name}: auditwheel does not say: {phrase}", f"it says: {text}")


def sdist_problems(sdist: Distribution, tracked: Collection[str]) -> Iterator[Problem]:
    """Check that an sdist has the files of the repository but for `LEFT_OUT`, and no others."""
    expected = {path for path in tracked if not path.startswith(LEFT_OUT)}
    there = set(sdist.digests) - _GENERATED
    for path in sorted(there - expected):
        known = "is left out of sdists" if path in tracked else "git does not know"
        yield Problem(
            f"{sdist.name} has {path}, which {known}",
            "remove it, or see tool.hatch.build.targets.sdist",
        )
    for path in sorted(expected - there):
        yield Problem(f"{sdist.name} lacks {path}", "see tool.hatch.build.targets.sdist")


def wheel_differences(wheel: Distribution, of_sdist: Distribution) -> Iterator[Problem]:
    """Check that the same wheel comes of the sdist as of the repository."""
    advice = "see tool.hatch.build.targets.sdist: the sdist lacks what the build needs"
    for path in sorted(wheel.digests.keys() | of_sdist.digests.keys()):
        of_tree, of_archive = wheel.digests.get(path), of_sdist.digests.get(path)
        if of_archive is None:
            yield Problem(f"the wheel that is built of the sdist lacks {path}", advice)
        elif of_tree is None:
            yield Problem(f"only the wheel that is built of the sdist has {path}", advice)
        elif of_tree != of_archive and not path.endswith(".dist-info/RECORD"):
            yield Problem(f"the wheel that is built of the sdist has another {path}", advice)


def uncommitted_problems(status: str) -> Iterator[Problem]:
    """Check that ``git status --porcelain`` has nothing to say."""
    paths = [line[3:] for line in status.splitlines()]
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        yield Problem(
            f"not committed: {', '.join(paths[:3])}{more}", "commit or remove it", is_warning=True
        )


def changelog_problems(text: str, version: str) -> Iterator[Problem]:
    """Check that the changelog has a section for the version, with a date, and something in it."""
    sections = dict(re.findall(r"^## \[?([^\]\s]+)\]?(.*?)(?=^## |\Z)", text, re.M | re.S))
    advice = f'write "## {version} - " and the date in place of "## Unreleased" in CHANGELOG.md'
    if version not in sections:
        yield Problem(f"the changelog has no section for {version}", advice, is_warning=True)
    elif not re.match(r" - \d{4}-\d\d-\d\d\n", sections[version]):
        yield Problem(f"the changelog has no date for {version}", advice, is_warning=True)
    elif "\n- " not in sections[version]:
        yield Problem(
            f"the changelog says nothing of {version}", "write what users notice", is_warning=True
        )
