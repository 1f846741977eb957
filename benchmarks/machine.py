"""What the figures were measured on: processor, memory, system, versions, load."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import TypedDict

_PACKAGES = (
    "pyspark-pylog",
    "numpy",
    "pyarrow",
    "pyspark",
    "fastcrc",
    "cramjam",
    "isal",
    "lz4",
    "zstandard",
    "aiokafka",
    "kafka-python",
)


class Machine(TypedDict):
    """A machine and what is installed on it."""

    cores: int
    processor: str
    memory_gib: int
    system: str
    versions: dict[str, str]


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


def load_average() -> list[float]:
    """Return the load of the last one and five minutes."""
    return [round(each, 1) for each in os.getloadavg()[:2]]


def this_machine() -> Machine:
    """Describe the machine that this process runs on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "cores": os.cpu_count() or 1,
        "processor": _processor(),
        "memory_gib": round(memory),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {
            "Python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
    }


def machine_lines(machine: Machine) -> list[str]:
    """Return the description as Markdown list items."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    hardware = f"{machine['cores']} cores, {machine['processor']}, {machine['memory_gib']} GiB"
    return [f"- {hardware}; {machine['system']}", f"- {versions}"]
