"""A made-up study as the report's view model. SAMPLE DATA: nothing in here was ever measured.

Figures are drawn from a seed around planted effects, so that every kind of row appears: better, worse,
equivalent, undecided, cut off, not applicable.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from functools import cache

from linerate.analysis.verdict import METRICS, Attribution, ClaimVerdict, Observation, judge
from linerate.report.study.model import CasePart, Recommendation, SettingValue, StudyPage, WorkloadPart
from linerate.results import Finding, Validity

START = datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
BLOCKS = 6
NOISE = 0.006

# case: what it is called, setting, asked for, change of 8k-random, 256k-seq-read, 256k-seq-write in percent
CASES: tuple[tuple[str, str, str, str, tuple[float, float, float]], ...] = (
    ("default", "default settings", "mtu", "1500", (-2.0, -7.2, -5.0)),
    ("jumbo", "jumbo frames, default buffers", "rx_ring", "256", (0.1, 0.0, -0.2)),
    ("baseline", "baseline: jumbo frames, largest buffers", "mtu", "9000", (0.0, 0.0, 0.0)),
    ("no-moderation", "interrupt moderation off", "interrupt_moderation_us", "0", (7.2, 0.3, -0.1)),
    ("no-rsc", "receive coalescing off", "receive_coalescing", "off", (0.2, -0.8, 0.1)),
    ("no-lso", "large send offload off", "large_send_offload", "off", (-1.0, -0.4, -3.9)),
    (
        "no-autotuning",
        "receive-window auto-tuning off",
        "receive_window_autotuning",
        "off",
        (0.3, -31.0, 0.2),
    ),
    ("no-delayed-ack", "delayed ACK off", "delayed_ack", "off", (0.1, 0.2, 0.0)),
    ("nagle", "Nagle's algorithm on", "nagle", "on", (-96.0, -0.6, -58.0)),
)
WORKLOADS = (
    ("8k-random", "8K random, 67 % read", "iops", 14_200.0),
    ("256k-seq-read", "256K sequential read", "mib_s", 117.9),
    ("256k-seq-write", "256K sequential write", "mib_s", 117.2),
)


@cache
def sample_page(*, evil: str = "", blocks: int = BLOCKS) -> StudyPage:
    """The sample. `evil` is put into every text that a user could have written."""
    observations = tuple(_observations(blocks))
    return StudyPage(
        name=f"nic-tuning{evil}",
        title=f"NIC tuning (sample){evil}",
        description=f"SAMPLE: made-up figures that show what the page looks like.{evil}",
        state="complete",
        validity=Validity(
            stamp="caution",
            findings=(
                Finding(
                    rule="foreign-cpu",
                    severity="caution",
                    reason=f"other programs used 7.1 % of the CPUs{evil}",
                    advice="run again on a quiet machine",
                    step="no-lso / 256k-seq-write, block 3",
                ),
            ),
        ),
        judgement=judge(observations, "baseline", {name: metric for name, _, metric, _ in WORKLOADS}),
        started_at=START,
        ended_at=START + timedelta(hours=1, minutes=12),
        cases=_cases(evil),
        workloads=tuple(WorkloadPart(name, title, METRICS[metric]) for name, title, metric, _ in WORKLOADS),
        observations=observations,
        attributions=tuple(
            Attribution(
                case,
                "256k-seq-read",
                "link",
                "The link: 99 % of line rate, load host CPU 31 % busy.",
                {"link_percent": 99.0},
            )
            for case, *_ in CASES
        ),
        recommendations=(
            Recommendation(
                setting="MTU (mtu)",
                instead_of="1500",
                recommended="9000",
                evidence=(
                    f"256K sequential read +5.5 % (5.1 .. 5.9), 6 blocks{evil}",
                    "256K sequential write +5.3 % (4.9 .. 5.6), 6 blocks",
                ),
            ),
            Recommendation(
                setting="interrupt moderation (interrupt_moderation_us)",
                instead_of="50",
                recommended="0",
                evidence=("8K random, 67 % read +7.2 % (6.5 .. 7.9), 6 blocks",),
                cost=("load host CPU 31 % to 44 % under 256K sequential read",),
            ),
        ),
        claims=_claims(evil),
        skipped=(("TCP offload engine on", f"no NIC here has a TCP offload engine{evil}"),),
        certainty="Quick: two short blocks per case. Only changes of more than 12 % could be found this way.",
        topologies=(
            (
                f"base-san{evil}",
                '<svg viewBox="0 0 400 60"><rect width="60" height="30" y="10" style="fill:none"/></svg>',
            ),
        ),
        laboratory=(("fabric", "user"), ("largest lag", "0.21 ms")),
        method=(("seed", "7"), ("order", "shuffled within each block"), ("test", "permutation, 6 blocks")),
        environment=(("kernel", "6.18.2"), ("CPUs", "2")),
        text=f'# SAMPLE{evil}\nname = "nic-tuning"\n',
    )


def _cases(evil: str) -> tuple[CasePart, ...]:
    shown = [
        CasePart(
            name=name,
            title=title,
            settings=(SettingValue(setting, asked, asked if name != "no-lso" else "on"),),
        )
        for name, title, setting, asked, _ in CASES
    ]
    toe = CasePart(
        name="toe",
        title="TCP offload engine on",
        not_applicable=f"no NIC here has a TCP offload engine{evil}",
    )
    return (*shown, toe)


def _observations(blocks: int) -> list[Observation]:
    drawn = random.Random("sample")
    visits = [*enumerate(CASES), *(item for item in enumerate(CASES) if item[1][0] == "baseline")]
    orders = [drawn.sample(visits, len(visits)) for _ in range(blocks)]
    return [
        Observation(
            case,
            workload,
            block,
            {
                metric: base
                * (1 + effects[place] / 100)
                * (1 + 0.004 * math.sin(block))
                * drawn.lognormvariate(0, 0.08 if (case, place) == ("no-rsc", 2) else NOISE),
                "response_ms": (2.8 if case != "no-autotuning" else 4.1) + 0.05 * drawn.random(),
                "p99_ms": 6.0 + 0.4 * drawn.random(),
                "retransmit_percent": 0.11 + 0.01 * drawn.random() if case == "default" else 0.0,
                "host_cpu_percent": (44.0 if case == "default" else 31.0 + number / 9) + drawn.random(),
                "array_cpu_percent": 28.0 + number / 9 + drawn.random(),
            },
            position,
        )
        for block in range(1, blocks + 1)
        for place, (workload, _, metric, base) in enumerate(WORKLOADS)
        for position, (number, (case, _, _, _, effects)) in enumerate(orders[block - 1])
    ]


def _claims(evil: str) -> tuple[ClaimVerdict, ...]:
    return (
        ClaimVerdict(
            claim="nic.jumbo.seqread",
            subject="both adapters, all modes",
            change="MTU 9000 against MTU 1500",
            workload="256K sequential read",
            published="significantly higher (over 5%)",
            measured="+5.5 % (5.1 .. 5.9)",
            verdict="agrees",
            reason="117.9 MB/s against 111.8 MB/s in 6 blocks",
            cases=("baseline",),
            against="default",
        ),
        ClaimVerdict(
            claim="nic.interrupt_moderation.off",
            subject="both adapters",
            change="interrupt moderation off against on",
            workload="all three",
            published="none",
            measured="8K random +7.2 % (6.5 .. 7.9)",
            verdict="differs",
            reason=f"the moderated NIC waits 50 us, a third of the round trip here{evil}",
            cases=("no-moderation",),
            against="baseline",
        ),
        ClaimVerdict(
            claim="nic.toe.throughput",
            subject="Broadcom 57810",
            change="TCP offload engine on against off",
            workload="all three",
            published="none",
            measured="",
            verdict="needs hardware",
            reason="no NIC here has a TCP offload engine",
            cases=("toe",),
        ),
        ClaimVerdict(
            claim="nic.buffers.maximum",
            subject="any adapter",
            change="maximum receive and transmit buffers against default",
            workload="congested network or busy processor",
            published="can help, at slightly more memory (asserted)",
            measured="",
            verdict="not tested",
            reason="",
        ),
    )
