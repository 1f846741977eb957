"""Modules of ours that are imported when they are first used, and not when their user is.

All other imports of ours stand at the head of a file. These kinds do not, and this is the one
place where they happen:

* **public names** of `pylog` and its namespaces: ``import pylog`` must cost next to nothing, since
  Spark imports it in every process that looks for a data source. `LazyNames` loads a name with its
  module.
* **commands** of the command line: ``pylog --help`` imports none of them, and ``pylog ls`` not what
  ``pylog cat`` needs. `load_name` returns a command's function; and the program itself, once the
  entry point has seen to Ctrl-C.
* **heavy parts**, where most uses of a module do without them: kernels, Arrow and modules of it,
  NumPy, object stores. `LazyModule` stands for such a module at the head of its user::

      if TYPE_CHECKING:
          from pylog.files import remote_storage
      else:
          remote_storage = LazyModule("pylog.files.remote_storage")

  The first line is what type checkers and import-linter see: a lazy import has the type of an
  ordinary one, obeys the layers, and closes no circle.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


def load_name(module: str, name: str) -> Any:  # noqa: ANN401 - whatever has that name
    """Return ``name`` of the module called ``module``, which is imported if it is not yet."""
    return getattr(importlib.import_module(module), name)


def modules_of(package: ModuleType) -> list[ModuleType]:
    """Return all modules of a package, imported: of kernels, which a build finds by itself."""
    names = [each.name for each in pkgutil.iter_modules(package.__path__)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


class LazyModule:
    """Stands for a module until an attribute of it is asked for, and passes those on from then on.

    Attributes are not kept: what a test puts in the place of a module's function is what is called.
    Any number of threads may use it, since imports have a lock of their own.
    """

    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever has that name
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)

    def __repr__(self) -> str:
        return f"LazyModule({self._name!r})"


class LazyNames:
    """Names that a package offers and that are loaded, each with its module, when asked for."""

    def __init__(
        self,
        package: str,
        names_by_module: Mapping[str, Sequence[str]],
        modules: Sequence[str] = (),
    ) -> None:
        self._package = package
        self.modules = modules
        self._modules = {
            name: module for module, names in names_by_module.items() for name in names
        }

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._modules)

    def module_of(self, name: str) -> str:
        """Return the module that ``name`` is defined in; ``KeyError`` if there is no such name."""
        return self._modules[name]

    def load(self, name: str) -> object:
        """Return what ``name`` stands for; this is the package's ``__getattr__``."""
        if name in self.modules:
            return importlib.import_module(f"{self._package}.{name}")
        if name not in self._modules:
            msg = f"module {self._package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = load_name(self._modules[name], name)
        setattr(sys.modules[self._package], name, value)
        return value
