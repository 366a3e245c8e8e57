"""The system configuration of a trial: what is wanted, and what the script has seen of it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any

from .params import Values


class SystemValues(Values):
    """How to use the machine. It remembers which values the script has read.

    A report says what was in force. The client cannot see whether a script
    makes, say, its data loader anew; but what it has never read, it cannot
    follow, and what it has read counts as followed.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values, "system setting", "the section system of the study decides")
        self._read: dict[str, Any] = {}

    @property
    def read(self) -> Mapping[str, Any]:
        """The values as they were when the script read them last."""
        return self._read

    def peek(self, name: str) -> Any:
        """The value, None without one, without counting as read."""
        return super().get(name)

    def ask(self, name: str, default: Any) -> Any:
        """The value, or the default, which counts as read: so the server learns that the script follows the knob."""
        if name not in self:
            self._read[name] = default
            return default
        return self[name]

    def change(self, values: Mapping[str, Any]) -> None:
        """Take a new configuration in place of this one."""
        super().clear()
        super().update(values)

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self._read[name] = value
        return value

    def __iter__(self) -> Iterator[str]:
        # With this method here, dict(trial.system) and **trial.system ask for each value.
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            return default
        return self[name]

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._read.update((name, super(SystemValues, self).__getitem__(name)) for name in self)
        return super().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self.items()
        return super().values()

    def copy(self) -> dict[str, Any]:
        return dict(self.items())
