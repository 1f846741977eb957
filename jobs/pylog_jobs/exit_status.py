"""Exit statuses, the same for every job, and those of the command line where both have one.

====  ============================================================================================
0     what was asked was done; also if there was nothing new to do
1     ``verify``, ``retention``, ``compact``: something is wrong with a log
2     wrong usage or configuration, or a path that cannot be read or holds no log: another attempt
      would end in the same way
3     the job failed: another attempt may succeed
130   stopped by Ctrl-C
143   stopped by SIGTERM
====  ============================================================================================
"""

from __future__ import annotations

DONE = 0
FINDINGS = 1
UNUSABLE = 2
FAILED = 3
OF_SIGNALS = 128
"""Added to a signal's number: what a shell reports of a program that the signal ended."""

STATUS_NAMES = {DONE: "done", FINDINGS: "findings", UNUSABLE: "unusable", FAILED: "failed"}
"""What key ``status`` of a summary says."""
STOPPED_NAME = "stopped"
"""The same for a job that a signal ended."""
