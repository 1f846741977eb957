"""Why a request to a store failed, from what the libraries raise; in words that hold no secret."""

from __future__ import annotations

import os
import re

import pyarrow as pa

from pylog.files.fsspec_store import FsspecError
from pylog.files.store_parameters import StoreUriError

STORE_FAILURES = (OSError, pa.ArrowException, StoreUriError)
"""What a store raises; all else is a mistake of ours."""

_AWS_CAUSE = re.compile(
    r"AWS Error [A-Z_]+(?: \(HTTP status \d+\))?(?: during \w+ operation)?"
    r"(?:: curlCode: \d+, [A-Za-z ']+)?"
)
_AZURE_CAUSE = re.compile(r"Azure Error: \[(\w*)\] (\d+)")
_GOOGLE_CAUSE = re.compile(r"google::cloud::Status\(([A-Z_]+)")
_GOOGLE_ADVICE = {
    "UNAVAILABLE": "; is the store reached?",
    "UNAUTHENTICATED": "; are the credentials right?",
    "PERMISSION_DENIED": "; may these credentials read and list it?",
}
_WRONG_PARAMETER = re.compile(r"Unexpected query parameter in \w+ URI: '\w+'")
_REDIRECT = re.compile(r"HTTP status 3\d\d")
_GONE = re.compile(
    r"AWS Error (?:NO_SUCH_KEY|RESOURCE_NOT_FOUND)|HTTP status 404|Azure Error: \[\w*\] 404"
    r"|Status\(NOT_FOUND|^No such file or directory '"
)
_AFTER_THE_END = re.compile(
    r"AWS Error INVALID_RANGE|HTTP status 416|Azure Error: \[\w*\] 416|Status\(OUT_OF_RANGE"
)
_NO_CREDENTIALS = re.compile(r"[Cc]redential|OAuth|metadata\.google\.internal|GetToken")


def is_missing(error: BaseException) -> bool:
    """Whether there is no file or directory of the name."""
    return isinstance(error, FileNotFoundError) or _GONE.search(str(error)) is not None


def is_after_the_end(error: BaseException) -> bool:
    """Whether a range was asked for that the file is too short for by now."""
    return _AFTER_THE_END.search(str(error)) is not None


def cause_of(error: BaseException) -> str:
    """Return why a request failed."""
    text = str(error)
    if isinstance(error, StoreUriError | FsspecError):
        return text
    if match := _REDIRECT.search(text):
        return (
            f"the store redirects to another address ({match[0]}), which is not followed; "
            "give that address as endpoint_override if you trust it"
        )
    if match := _AWS_CAUSE.search(text) or _WRONG_PARAMETER.search(text):
        return match[0]
    if cause := _cause_of_cloud(text):
        return cause
    if "Unable to load lib" in text:
        return "Hadoop's libraries are not found; set HADOOP_HOME, JAVA_HOME and CLASSPATH"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError):
        return f"{type(error).__name__}: the URI is not one that pyarrow.fs understands"
    return f"{type(error).__name__} from the store; is it reached, and are the credentials right?"


def _cause_of_cloud(text: str) -> str:
    """Return what Azure or Google said, "" if neither did."""
    if match := _AZURE_CAUSE.search(text):
        return f"Azure error {match[1] or 'without a name'} (HTTP status {match[2]})"
    if match := _GOOGLE_CAUSE.search(text):
        about = "; are there credentials?" if _NO_CREDENTIALS.search(text) else ""
        return f"Google Cloud error {match[1]}{about or _GOOGLE_ADVICE.get(match[1], '')}"
    return ""
