"""``python -m pylog_jobs.java_home`` prints the directory of the Java that Spark starts.

With ``--check`` it prints nothing and answers by its exit status (0 found, 1 not).
"""

from __future__ import annotations

import sys

from pyspark_pylog.jobs import JavaNotFoundError, find_java_home


def main() -> int:
    """Print the directory, or with ``--check`` only report whether there is one."""
    try:
        home = find_java_home()
    except JavaNotFoundError as error:
        if "--check" not in sys.argv:
            sys.stderr.write(f"{error}\n")
        return 1
    if "--check" not in sys.argv:
        sys.stdout.write(f"{home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
