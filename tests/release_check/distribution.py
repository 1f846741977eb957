"""What is in a wheel or an sdist."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from typing import TYPE_CHECKING, NamedTuple

from packaging.metadata import Metadata

from tests.release_check.problem import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Distribution(NamedTuple):
    """A file that `build` has made.

    Attributes
    ----------
    name
        The file's.
    digests
        Of each file in it, by its path. The paths of an sdist are below its one folder.
    metadata
        As indexes read it, and checked as they check it.
    """

    name: str
    digests: Mapping[str, str]
    metadata: Metadata


def read_wheel(path: Path) -> Distribution:
    """Return what is in a wheel.

    Raises
    ------
    StepFailedError
        An index would refuse the metadata.
    """
    with zipfile.ZipFile(path) as archive:
        contents = {
            each.filename: archive.read(each) for each in archive.infolist() if not each.is_dir()
        }
    [metadata] = [name for name in contents if name.endswith(".dist-info/METADATA")]
    return _distribution(path.name, contents, metadata)


def read_libraries(path: Path) -> dict[str, bytes]:
    """Return the shared libraries of a wheel, by their names."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
        return {name.rpartition("/")[2]: archive.read(name) for name in names}


def read_sdist(path: Path) -> Distribution:
    """Return what is in an sdist; raises as `read_wheel` does."""
    contents = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                contents[member.name.partition("/")[2]] = file.read()
    return _distribution(path.name, contents, "PKG-INFO")


def _distribution(name: str, contents: Mapping[str, bytes], metadata: str) -> Distribution:
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    try:
        return Distribution(name, digests, Metadata.from_email(contents[metadata]))
    except ExceptionGroup as error:
        reasons = "; ".join(map(str, error.exceptions))
        msg = f"an index would refuse the metadata of {name}: {reasons}"
        raise StepFailedError(msg) from error
