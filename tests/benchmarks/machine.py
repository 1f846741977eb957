"""What the figures were measured on: processor, memory, system, versions."""

import importlib.metadata
import os
import platform
from pathlib import Path

_PACKAGES = (
    "pyspark-pylog",
    "numpy",
    "numba",
    "pyarrow",
    "pyspark",
    "crc32c",
    "cramjam",
    "isal",
    "lz4",
    "zstandard",
    "aiokafka",
    "kafka-python",
)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def load_average() -> str:
    """Return the load of the last one and five minutes."""
    one, five, _ = os.getloadavg()
    return f"{one:.1f} / {five:.1f}"


def machine_lines() -> list[str]:
    """Return the description as Markdown list items."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    system = f"{platform.system()} {platform.release()}"
    return [
        f"- {os.cpu_count()} cores, {_processor()}, {memory:.0f} GiB; {system}",
        f"- Python {platform.python_version()}; {versions}",
    ]
