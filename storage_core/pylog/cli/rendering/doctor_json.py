"""What `pylog.doctor` found, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog import DoctorReport, Finding, PartitionReport, RepairSummary


def doctor_document(
    report: DoctorReport, least: Severity, summary: RepairSummary | None = None
) -> dict[str, Any]:
    """Return all of it; sizes and positions in bytes.

    ``least`` as of `print_doctor_report`; ``summary`` of a repaired copy, if one was written.
    """
    document = _report(report, least)
    if summary is not None:
        document["copy"] = {
            "directory": summary.directory,
            "partitions": [
                {
                    "topic": each.topic_partition.topic,
                    "partition": each.topic_partition.partition,
                    "path": each.path,
                    "copiedBytes": each.copied_bytes,
                    "leftOutBytes": each.left_out_bytes,
                    "endOffset": each.end_offset,
                }
                for each in summary.partitions
            ],
            "leftOut": [str(each) for each in summary.left_out],
            "report": _report(summary.copy, least),
        }
    return document


def _report(report: DoctorReport, least: Severity) -> dict[str, Any]:
    return {
        "directories": [
            {
                "path": each.path,
                "cleanShutdown": each.is_clean,
                "findings": _findings(each.findings, least),
            }
            for each in report.directories
        ],
        "partitions": [_partition(each, least) for each in report.partitions],
        "summary": {
            "partitions": len(report.partitions),
            "sizeInBytes": report.size_bytes,
            "soundBytes": report.scanned_bytes,
            "errors": report.counts[Severity.ERROR],
            "warnings": report.counts[Severity.WARNING],
            "infos": report.counts[Severity.INFO],
        },
    }


def _partition(partition: PartitionReport, least: Severity) -> dict[str, Any]:
    offsets, start = partition.offsets, partition.start
    return {
        "topic": partition.topic_partition.topic,
        "partition": partition.topic_partition.partition,
        "path": partition.path,
        "sizeInBytes": partition.size_bytes,
        "soundBytes": partition.scanned_bytes,
        "startOffset": partition.start_offset,
        "endOffset": partition.end_offset,
        "offsets": {
            "records": offsets.records,
            "controlRecords": offsets.control_records,
            "compacted": offsets.compacted,
            "missing": offsets.missing,
            "damaged": offsets.damaged,
        },
        "brokerStart": None
        if start is None
        else {
            "cleanShutdown": start.is_clean,
            "scannedSegments": start.scanned_segments,
            "cutPath": start.cut_path,
            "cutPosition": start.cut_position,
            "cutOffset": start.cut_offset,
            "lostBytes": start.lost_bytes,
            "deletedSegments": start.deleted_segments,
            "losesRecords": start.loses_records,
        },
        "findings": _findings(partition.findings, least),
    }


def _findings(findings: Iterable[Finding], least: Severity) -> list[dict[str, Any]]:
    return [
        {
            "severity": str(each.severity),
            "code": each.code,
            "path": each.path,
            "position": each.position,
            "endPosition": each.end_position,
            "nextOffset": each.next_offset,
            "endOffset": each.end_offset,
            "message": each.message,
            "brokerAction": each.broker_action,
            "advice": each.advice,
        }
        for each in findings
        if each.severity.is_at_least(least)
    ]
