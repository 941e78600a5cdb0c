"""What tests of several paths share with those of labs: they are skipped where there are none."""

from __future__ import annotations

from tests.lab.conftest import _namespaces

__all__ = ["_namespaces"]
