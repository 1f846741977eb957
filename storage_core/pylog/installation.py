"""How pylog was installed, and the command that installs more of it the same way."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from importlib import metadata

DISTRIBUTION = "pyspark-pylog"


def install_command(extra: str | None = None, *options: str) -> str:
    """Return the command that installs pylog, with what the extra brings, as it was installed.

    From a clone that is a path, from a wheel the file, from a repository its address; else, an
    index knows the name.

    Parameters
    ----------
    extra
        One of the extras in ``pyproject.toml``, such as ``duckdb``.
    *options
        Further words for pip.

    Examples
    --------
    >>> pylog.jobs.install_command("duckdb").endswith("[duckdb]'")
    True
    """
    from importlib import metadata  # noqa: PLC0415 - most runs do without, and it takes long

    try:
        installed = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # the packages of a clone, on PYTHONPATH
        what = [_with_extra(_short(Path(__file__).parents[2]), extra)]
    else:
        what = _requirement(installed, extra)
    return shlex.join([*_pip_install(), *options, *what])


def missing_package(user: str, title: str, extra: str | None = None) -> ModuleNotFoundError:
    """Return the error to raise, with the command that installs what is missing.

    Without an extra, the command installs the package by its name.
    """
    package = title.lower()
    command = install_command(extra) if extra else shlex.join([*_pip_install(), package])
    return ModuleNotFoundError(f"{user} needs {title}: {command}", name=package)


def _requirement(installed: metadata.Distribution, extra: str | None) -> list[str]:
    text = installed.read_text("direct_url.json")
    if text is None:
        return [_with_extra(DISTRIBUTION, extra)]
    origin = json.loads(text)
    if "vcs_info" in origin:
        version = origin["vcs_info"]
        at = f"@{version['requested_revision']}" if "requested_revision" in version else ""
        return [f"{_with_extra(DISTRIBUTION, extra)} @ {version['vcs']}+{origin['url']}{at}"]
    path = Path(unquote(urlsplit(origin["url"]).path))
    if origin["url"].startswith("file:") and not path.exists() and extra is not None:
        # The clone or the wheel is gone: what the extra would bring, by itself.
        ends = f"extra == '{extra}'", f'extra == "{extra}"'
        needed = [each.partition(";") for each in installed.requires or ()]
        return [name.strip() for name, _, when in needed if when.strip().endswith(ends)]
    local = _short(path) if origin["url"].startswith("file:") else origin["url"]
    is_editable = origin.get("dir_info", {}).get("editable", False)
    return [*(["-e"] if is_editable else []), _with_extra(local, extra)]


def _with_extra(what: str, extra: str | None) -> str:
    return what if extra is None else f"{what}[{extra}]"


def _short(path: Path) -> str:
    """Return a path as it is typed in its own directory, or from anywhere."""
    return "." if Path.cwd() == path else str(path)


def _pip_install() -> list[str]:
    """Return how this Python installs: another pip would install for another."""
    python = Path(sys.executable)
    found = shutil.which("pip")
    if found is not None and Path(found).parent == python.parent:
        return ["pip", "install"]
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", str(python)]
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return [str(python), "-m", "pip", "install"]
