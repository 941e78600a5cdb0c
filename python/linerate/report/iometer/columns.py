"""The columns of Iometer's result file, in its order (Iometer 1.1.0)."""

from __future__ import annotations

import math

_RESPONSES = (
    "Response Time",
    "Read Response Time",
    "Write Response Time",
    "Transaction Time",
    "Connection Time",
)
_RAW = ("Read Response Time", "Write Response Time", "Transaction Time", "Connection Time")

BINS: tuple[tuple[str, float], ...] = (
    ("0 to 50 uS", 50e3),
    ("50 to 100 uS", 100e3),
    ("100 to 200 uS", 200e3),
    ("200 to 500 uS", 500e3),
    ("0.5 to 1 mS", 1e6),
    ("1 to 2 mS", 2e6),
    ("2 to 5 mS", 5e6),
    ("5 to 10 mS", 10e6),
    ("10 to 15 mS", 15e6),
    ("15 to 20 mS", 20e6),
    ("20 to 30 mS", 30e6),
    ("30 to 50 mS", 50e6),
    ("50 to 100 mS", 100e6),
    ("100 to 200 mS", 200e6),
    ("200 to 500 mS", 500e6),
    ("0.5 to 1 S", 1e9),
    ("1 to 2 s", 2e9),
    ("2 to 4.7 s", 4.7e9),
    ("4.7 to 5 s", 5e9),
    ("5 to 10 s", 10e9),
    (" >= 10 s", math.inf),
)
"""Names of the latency bins with their upper limits in ns. (Iometer ends that of 4.7 s at 4 s, and counts nothing from
10 s on.)"""

COLUMNS = (
    *("Target Type", "Target Name", "Access Specification Name", "# Managers", "# Workers", "# Disks"),
    *("IOps", "Read IOps", "Write IOps"),
    *("MiBps (Binary)", "Read MiBps (Binary)", "Write MiBps (Binary)"),
    *("MBps (Decimal)", "Read MBps (Decimal)", "Write MBps (Decimal)"),
    *("Transactions per Second", "Connections per Second"),
    *(f"Average {what}" for what in _RESPONSES),
    *(f"Maximum {what}" for what in _RESPONSES),
    *("Errors", "Read Errors", "Write Errors", "Bytes Read", "Bytes Written", "Read I/Os", "Write I/Os"),
    *("Connections", "Transactions per Connection"),
    *(f"Total Raw {what}" for what in _RAW),
    *(f"Maximum Raw {what}" for what in _RAW),
    *("Total Raw Run Time", "Starting Sector", "Maximum Size", "Queue Depth"),
    *("% CPU Utilization", "% User Time", "% Privileged Time", "% DPC Time", "% Interrupt Time"),
    *("Processor Speed", "Interrupts per Second", "CPU Effectiveness"),
    *("Packets/Second", "Packet Errors", "Segments Retransmitted/Second"),
    *(name for name, _ in BINS),
)
