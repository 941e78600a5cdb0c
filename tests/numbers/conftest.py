"""Fixtures."""

from tests.support.samples.plugin import histogram_decoder

__all__ = ["histogram_decoder"]
