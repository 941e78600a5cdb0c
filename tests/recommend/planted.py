"""Studies that recommend what a test wants: the made-up page of the samples with other recommendations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from linerate.recommend import Configuration
from linerate.recommend.configuration import configuration_of
from linerate.report.study import Recommendation
from linerate.results import Validity
from linerate.setting import Value
from linerate.settings import find

from tests.support.samples.study_page import sample_page


def recommendation(values: Mapping[str, Value], **changes: Any) -> Recommendation:
    """One that recommends these settings together."""
    texts = {name: find(name).text(find(name).parse(value)) for name, value in values.items()}
    planted = Recommendation(
        setting=" and ".join(find(name).title for name in values),
        instead_of="as it was",
        recommended=", ".join(texts.values()),
        evidence=("8K random: +7.2 % (+6.5 .. +7.9); 6 blocks",),
        compared=("the case against the baseline",),
        values=dict(values),
    )
    return replace(planted, **changes)


def configuration(
    values: Mapping[str, Value], *others: Recommendation, ports: tuple[str, ...] = (), **page: Any
) -> Configuration:
    """A configuration of a valid, complete study that recommends each of the values, and the others."""
    sound = Validity(stamp="valid", findings=())
    found = (*(recommendation({name: value}) for name, value in values.items()), *others)
    return configuration_of(
        replace(sample_page(), **{"validity": sound, "recommendations": found, **page}), ports
    )
