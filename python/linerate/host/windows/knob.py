"""How Windows turns a setting: lines of PowerShell that save, set, show and put back."""

from __future__ import annotations

from typing import Protocol

from linerate.host.setting import Value


class WindowsKnob(Protocol):
    """Writes PowerShell for one setting. `$Ports` holds the names of the SAN's adapters in the generated
    script."""

    def save(self) -> list[str]:
        """Lines that add the present values to `$Saved`."""

    def apply(self, value: Value) -> list[str]:
        """Lines that set the value."""

    def verify(self) -> list[str]:
        """Lines that show what it stands at."""

    def undo(self) -> list[str]:
        """Lines that put back what `save` kept."""
