"""Made-up packages to check: their sources by module name."""

from __future__ import annotations

from tests.structure.source_tree import Module, SourceTree


def tree_of(sources: dict[str, str]) -> SourceTree:
    """Return a tree of these modules and of the packages that they are in."""
    modules = {}
    for name in {package for each in sources for package in _packages(each)} | set(sources):
        is_package = any(each.startswith(f"{name}.") for each in sources)
        path = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        modules[name] = Module(name, path, sources.get(name, ""))
    return SourceTree(modules)


def _packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]
