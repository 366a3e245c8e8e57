"""Finding the name a person meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A clause to append to "there is no ...": the nearest name, or all that exist."""
    names = sorted(known)
    if not names:
        return ": there are none"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f", did you mean {near[0]!r}? There are: {listed}" if near else f": there are {listed}"
