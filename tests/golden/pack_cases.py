"""Pack golden case folders into the archives below ``cases/``.

    python tests/golden/pack_cases.py SOURCE_DIR

``SOURCE_DIR/<broker version>/<scenario>/`` becomes ``cases/<broker version>/<scenario>.tar.xz``
and, readable beside it, ``<scenario>.toml``, a copy of the folder's ``case.toml``. The same files
with the same modification times always give the same archive (for one liblzma): members are
sorted, owned by 0/0 and read-only, and no clock is asked.

A folder whose files differ from the sha256 table of its ``case.toml`` is not packed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import sys
import tarfile
import tomllib
from pathlib import Path

CASES_DIRECTORY = Path(__file__).parent / "cases"
CERTIFICATE = "case.toml"
NANOSECONDS = 1_000_000_000
FILE_MODE, DIRECTORY_MODE = 0o444, 0o555


def ensure_certificate_is_true(case: Path) -> None:
    """Raise ValueError naming a file which is missing, added or not what ``case.toml`` says."""
    stated: dict[str, str] = tomllib.loads((case / CERTIFICATE).read_text("utf-8"))["sha256"]
    found = {
        path.relative_to(case).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in case.rglob("*")
        if path.is_file() and path != case / CERTIFICATE
    }
    for name in sorted(stated.keys() | found.keys()):
        if stated.get(name) != found.get(name):
            raise ValueError(
                f"{case / name}: case.toml says {stated.get(name, 'nothing of it')}, "
                f"the file is {found.get(name, 'missing')}"
            )


def member_of(path: Path, name: str) -> tarfile.TarInfo:
    """Return the archive member of a file or folder, its modification time to the nanosecond."""
    stat = path.stat()
    member = tarfile.TarInfo(name)
    seconds, nanoseconds = divmod(stat.st_mtime_ns, NANOSECONDS)
    # As text: tarfile itself would go through a float and lose the last three digits.
    member.pax_headers = {"mtime": f"{seconds}.{nanoseconds:09d}"}
    if path.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, DIRECTORY_MODE
    elif path.is_file() and not path.is_symlink():
        member.mode, member.size = FILE_MODE, stat.st_size
    else:
        raise ValueError(f"{path}: neither a file nor a folder")
    return member


def tar_of(case: Path) -> bytes:
    """Return the ``.tar`` of one case folder; its members begin with ``<scenario>/``."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in [case, *sorted(case.rglob("*"))]:
            member = member_of(path, path.relative_to(case.parent).as_posix())
            archive.addfile(member, io.BytesIO(path.read_bytes()) if member.isfile() else None)
    return stream.getvalue()


def main() -> None:
    """Pack every case of the folder named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, metavar="SOURCE_DIR")
    source: Path = parser.parse_args().source
    certificates = sorted(source.glob(f"*/*/{CERTIFICATE}"))
    if not certificates:
        parser.error(f"no <broker version>/<scenario>/{CERTIFICATE} below {source}")
    total = 0
    for certificate in certificates:
        case = certificate.parent
        ensure_certificate_is_true(case)
        packed = lzma.compress(tar_of(case), preset=9 | lzma.PRESET_EXTREME)
        target = CASES_DIRECTORY / case.parent.name / case.name
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{target}.tar.xz").write_bytes(packed)
        Path(f"{target}.toml").write_bytes(certificate.read_bytes())
        total += len(packed)
        sys.stdout.write(f"{len(packed):>8} {case.parent.name}/{case.name}\n")
    sys.stdout.write(f"{total:>8} bytes in {len(certificates)} archives\n")


if __name__ == "__main__":
    main()
