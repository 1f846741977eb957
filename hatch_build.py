"""What a build makes of the README: the page that a package index shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

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
