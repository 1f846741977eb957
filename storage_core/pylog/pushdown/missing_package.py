"""What is said where an extra of the distribution is not installed."""

from __future__ import annotations


def missing_package(user: str, package: str, title: str) -> ModuleNotFoundError:
    """Return the error to raise, with the command that installs what is missing.

    Parameters
    ----------
    user
        The module that needs it.
    package
        Its name, and that of the extra.
    title
        What people call it.
    """
    msg = f"{user} needs {title}: pip install 'pyspark-pylog[{package}]'"
    return ModuleNotFoundError(msg, name=package)
