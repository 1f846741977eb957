"""Secrets of a configuration: where they come from, and what is shown in their place.

``${env:NAME}`` is an environment variable, ``${file:PATH}`` the text of a file without its last
line end. A job registers each value when it reads it. Whatever the job writes about itself goes
through `SecretValues.hide`, which puts the reference back. What Spark shows in its UI and writes to
its event logs (paths, queries, expressions, settings) does not, so that secrets may be in options
of a source alone, and of these in credentials and URLs.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<name>[^{}]+)\}")
_LIKE_REFERENCE = re.compile(r"\$\{[A-Za-z_][^{}]*\}")
_MOST_BYTES = 64 << 10
LEAST_CHARACTERS = 4
"""A shorter value occurs in any text, so that hiding it would make logs unreadable."""

_T = TypeVar("_T")

_CREDENTIAL = re.compile("user|password|passwd|pwd|secret|token|credential|access.?key", re.I)
_OTHER_SECRET = re.compile(
    r"jaas|passphrase|connection.?string|ur[li]$|\bsas\b"
    r"|(?:account|api|private|shared|encryption|signing).?key",
    re.I,
)
"""What else may be secret; not among credentials, which fingerprints leave out."""
_URL_PARAMETER = re.compile(r"(?P<before>[?&;])(?P<name>[^=?&;]*)=[^&;]*")
_URL = re.compile(r"[A-Za-z][\w+.-]*:")
_URL_USER = re.compile(r"(?P<before>//)[^/@]*:[^/@]*@")
_JDBC_USER = re.compile(r"(?P<before>^jdbc:.*?//)[^/@]*@")  # elsewhere it may be a container
_ORACLE_USER = re.compile(r"(?P<before>jdbc:oracle:\w+:)[^@/]*/(?:\"[^\"]*\"|[^@]*)@")


def is_credential(name: str) -> bool:
    """Whether an option of this name holds a user name, a password or the like."""
    return _CREDENTIAL.search(name) is not None


def may_be_secret(name: str) -> bool:
    """Whether a value of an option of this name may come from a secret: a credential, or a URL."""
    return is_credential(name) or _OTHER_SECRET.search(name) is not None


def without_credentials(text: str) -> str:
    """Return a URL, or any other text, without the user names and passwords that URLs have."""
    if _URL.match(text) is None:
        return text
    for pattern, put in ((_ORACLE_USER, "@"), (_URL_USER, ""), (_JDBC_USER, "")):
        text = pattern.sub(rf"\g<before>{put}", text)
    return _URL_PARAMETER.sub(lambda match: "" if is_credential(match["name"]) else match[0], text)


class SecretValues:
    """The secrets that one run has read."""

    def __init__(self) -> None:
        self._references: dict[str, str] = {}

    def resolve(self, text: str) -> str:
        """Return a text with the value of each reference; `ValueError` if it has none."""
        for found in _LIKE_REFERENCE.findall(text):
            if _REFERENCE.fullmatch(found) is None:
                raise ValueError(
                    f"{found} is no secret: these are ${{env:NAME}} and ${{file:PATH}}, and "
                    "parameters are {NAME}"
                )
        return _REFERENCE.sub(
            lambda match: self._value(match[0], match["kind"], match["name"]), text
        )

    def _value(self, reference: str, kind: str, name: str) -> str:
        value = _of_environment(name) if kind == "env" else _of_file(name)
        if len(value) < LEAST_CHARACTERS:
            raise ValueError(
                f"{reference} has {len(value)} characters; a secret has at least "
                f"{LEAST_CHARACTERS}, since shorter ones cannot be kept out of logs. Give "
                "what is no secret by --param"
            )
        # An error's text may end with it, and is stripped.
        for shown in {value, value.strip(), *value.splitlines(), json.dumps(value)[1:-1]}:
            if len(shown) >= LEAST_CHARACTERS:
                self._references.setdefault(shown, reference)
        return value

    def hide(self, value: _T) -> _T:
        """Return text, or a list or dict of texts, with the references in place of the values."""
        hidden: object = value
        if isinstance(value, str):
            hidden = value
            # The longest first, since another may be a part of it.
            for secret in sorted(self._references, key=lambda each: (-len(each), each)):
                hidden = hidden.replace(secret, self._references[secret])
        elif isinstance(value, dict):
            hidden = {self.hide(name): self.hide(each) for name, each in value.items()}
        elif isinstance(value, (list, tuple)):
            hidden = [self.hide(each) for each in value]
        return hidden  # type: ignore[return-value]  # of the same shape


def has_reference(value: object) -> bool:
    """Whether a text, or a list or dict of texts, has a reference to a secret."""
    if isinstance(value, str):
        return _REFERENCE.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_reference, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_reference, value))


def _of_environment(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(f"environment variable {name} is not set")
    return value


def _of_file(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot read the secret in {name}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise ValueError(f"{name} has more than {_MOST_BYTES} bytes, which is no secret")
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ValueError(f"the secret in {name} is not UTF-8 (byte {error.start})") from error


def options_without_credentials(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without those that hold credentials, and URLs without theirs."""
    return {
        name: without_credentials(value)
        for name, value in options.items()
        if not is_credential(name)
    }
