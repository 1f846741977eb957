"""The parameters of a store: a URI's query, and what a caller gave as storage options."""

from __future__ import annotations

import difflib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pyarrow.fs as pa_fs

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping


class StoreUriError(ValueError):
    """A URI does not lead to a store; the text holds nothing of what may be secret."""


def store_parts(shape: re.Pattern[str], store: str, shapes: str) -> list[str]:
    """Return the groups of a store's URI, empty where one is not there.

    Parameters
    ----------
    shape
        What such a URI matches as a whole.
    store
        The URI up to its host.
    shapes
        How it may be written, for people.

    Raises
    ------
    StoreUriError
        It does not match.
    """
    parts = shape.fullmatch(store)
    if parts is None:
        msg = f"not {shapes}"
        raise StoreUriError(msg)
    return list(parts.groups(default=""))


def endpoint_parameters(url: str, default_scheme: str) -> dict[str, Any]:
    """Return the parameters that lead to the server at ``url``; none if it is empty."""
    scheme, _, endpoint = url.rstrip("/").rpartition("://")
    return {"endpoint_override": endpoint, "scheme": scheme or default_scheme} if endpoint else {}


def boolean(text: str) -> bool:
    """Return what "true" or "false" means."""
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def parse_parameters(query: str, known: Mapping[str, Callable[[str], object]]) -> dict[str, Any]:
    """Return the parameters in a query by name.

    Parameters
    ----------
    query
        With its question mark, or nothing.
    known
        What makes a value of a text, by name; it raises ``ValueError``.

    Raises
    ------
    StoreUriError
        A name is not known, or its value is not one.
    """
    parameters: dict[str, object] = {}
    for name, text in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            msg = f"unknown parameter {name!r}{hint}; there are {', '.join(known)}"
            raise StoreUriError(msg)
        try:
            parameters[name] = known[name](text)
        except ValueError:
            msg = f"parameter {name!r} has an invalid value"
            raise StoreUriError(msg) from None
    return parameters


def made_by_arrow(name: str, parameters: Mapping[str, object]) -> Any:  # noqa: ANN401 - as pyarrow
    """Return the file system of ``pyarrow.fs`` called ``name``, made with ``parameters``.

    Raises
    ------
    StoreUriError
        This build of pyarrow lacks it or one of the parameters, or they contradict each other.
    OSError
        The store is needed for that, and cannot be asked.
    """
    try:
        return getattr(pa_fs, name)(**parameters)
    except ImportError:
        msg = f"this build of pyarrow has no {name}; the one on PyPI has, for Linux and macOS"
        raise StoreUriError(msg) from None
    except TypeError:
        names = ", ".join(parameters)
        msg = f"pyarrow {version('pyarrow')} does not know all of {names}; a newer one does"
        raise StoreUriError(msg) from None
    except ValueError:  # its text may repeat values
        msg = f"parameters {', '.join(parameters)} do not go together"
        raise StoreUriError(msg) from None
