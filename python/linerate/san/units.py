"""Rates, delays and shares as network people write them: `1gbit`, `200us`, `0.1%`."""

from __future__ import annotations

import re

from linerate.quantity import number_text

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)bit(?:/s|ps)?", re.IGNORECASE)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s)", re.IGNORECASE)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_RATE_FACTOR = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_DELAY_FACTOR = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_RATE_MAX = 1e12
_DELAY_US_MAX = 10e6

RATE_FORM = 'bits per second with kbit, mbit or gbit (1000-based), for example "1gbit"'
DELAY_FORM = 'a time with ns, us, ms or s, for example "200us"'
SHARE_FORM = 'a percentage, for example "0.1%"'


def parse_rate(text: str) -> float:
    """Bits per second of `1gbit`, `250mbit`, `2.5Gbit/s`. Raises ValueError."""
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _RATE_FACTOR[match[2].lower()] if match else 0.0
    if not 0 < rate <= _RATE_MAX:
        raise ValueError(f"{text!r} is not a rate; write {RATE_FORM}")
    return rate


def parse_delay_us(text: str) -> float:
    """Microseconds of `200us`, `1.5ms`, `0`. Raises ValueError."""
    match = _DELAY.fullmatch(text.strip())
    delay_us = float(match[1]) * _DELAY_FACTOR[match[2].lower()] if match else 0.0
    if (match is None and text.strip() != "0") or delay_us > _DELAY_US_MAX:
        raise ValueError(f"{text!r} is not a delay up to 10 s; write {DELAY_FORM}")
    return delay_us


def parse_share(text: str) -> float:
    """The fraction (0 to 1) of `0.1%`, `0`. Raises ValueError."""
    match = _SHARE.fullmatch(text.strip())
    share = float(match[1]) / 100 if match else 0.0
    if (match is None and text.strip() != "0") or share > 1:
        raise ValueError(f"{text!r} is not a share; write {SHARE_FORM}")
    return share


def rate_text(rate_bits_per_s: float) -> str:
    """The shortest form: 250e6 is `250mbit`."""
    for suffix in ("g", "m", "k"):
        if rate_bits_per_s >= _RATE_FACTOR[suffix]:
            return f"{number_text(rate_bits_per_s / _RATE_FACTOR[suffix])}{suffix}bit"
    return f"{number_text(rate_bits_per_s)}bit"


def delay_text(delay_us: float) -> str:
    """The shortest form: 1000 is `1ms`."""
    for suffix in ("s", "ms", "us"):
        if delay_us >= _DELAY_FACTOR[suffix]:
            return f"{number_text(delay_us / _DELAY_FACTOR[suffix])}{suffix}"
    return f"{number_text(delay_us * 1000)}ns" if delay_us else "0"


def share_text(share: float) -> str:
    """The shortest form: 0.001 is `0.1%`."""
    return f"{share * 100:.10g}%"
