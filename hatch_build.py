"""What a build makes: the compiled kernels, and of the README the page that an index shows."""

from __future__ import annotations

import importlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PLATFORM_VARIABLE = "PYLOG_WHEEL_PLATFORM"
"""The environment variable that names a platform of `pylog.kernel_compilation` to build for."""

_FOR_THIS_MACHINE = """
from pylog.native.library import library_of_tree, these_levels
library_of_tree(these_levels()[0])
"""

_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)]+)\)")
_RELATIVE_PICTURE = re.compile(r'\b(src|srcset)="(?![a-z]+:)([^"]+)"')


def index_page(readme: str, source_url: str) -> str:
    """Return ``readme`` with each link to a file of the repository made absolute, pictures too.

    Parameters
    ----------
    readme
        Markdown, whose links are relative to the root of the repository.
    source_url
        The repository's address, without a slash at its end.
    """
    readme = _RELATIVE_PICTURE.sub(rf'\1="{source_url}/raw/HEAD/\2"', readme)
    return _RELATIVE_LINK.sub(rf"]({source_url}/blob/HEAD/\1)", readme)


class ReadmeHook(MetadataHookInterface):
    """Gives the project its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the page into ``metadata``, the table ``project`` of pyproject.toml."""
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": index_page(readme, metadata["urls"]["Source"]),
        }


class KernelsHook(BuildHookInterface[Any]):
    """Puts the compiled kernels into a wheel, or for an editable install into ``build/kernels``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries: for `PLATFORM_VARIABLE`, else for this machine."""
        if self.target_name != "wheel":
            return
        missing = [each for each in ("numba", "ziglang") if find_spec(each) is None]
        if missing:
            msg = (
                f"{' and '.join(missing)} to compile pylog's kernels with cannot be imported, or "
                f"there is none for Python {platform.python_version()} on {sys.platform}, "
                f"{platform.machine()}. Install a wheel instead, which needs no compiler: pip "
                "install --only-binary pyspark-pylog pyspark-pylog"
            )
            raise RuntimeError(msg)
        if version == "editable":
            self._python("-c", _FOR_THIS_MACHINE)
            return
        sources = str(Path(self.root) / "storage_core")
        sys.path.insert(0, sources)
        try:
            compilation = importlib.import_module("pylog.kernel_compilation")
        finally:
            sys.path.remove(sources)
        name = os.environ.get(PLATFORM_VARIABLE) or compilation.this_platform()
        if name not in compilation.PLATFORMS:
            known = ", ".join(compilation.PLATFORMS)
            raise RuntimeError(f"there are no kernels for {name}, only for {known}")
        kept = Path(self.root, "build", "kernels")
        kept.mkdir(parents=True, exist_ok=True)
        self._libraries = tempfile.TemporaryDirectory(dir=kept, prefix="wheel-")
        libraries = self._libraries.name
        self._python(
            *("-m", "pylog.kernel_compilation", "--platform", name, "--directory", libraries)
        )
        for path in sorted(Path(libraries).iterdir()):
            build_data["force_include"][str(path)] = f"pylog/native/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{compilation.PLATFORMS[name].wheel_tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel by now."""
        if hasattr(self, "_libraries"):
            self._libraries.cleanup()

    def _python(self, *arguments: str) -> None:
        # Python looks for modules in the working directory first.
        command = [sys.executable, *arguments]
        subprocess.run(command, cwd=Path(self.root, "storage_core"), check=True)
