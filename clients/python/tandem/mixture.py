"""Finding out that another distribution has put its files among ours."""

from __future__ import annotations

import re
from pathlib import Path

_OURS = re.compile(r"^(tandem/__init__\.py|\.\./.*bin/tandem),", re.MULTILINE)


def refuse_mixture(folder: Path) -> None:
    """Raise ImportError if the folder's distribution called ``tandem``, which is not ours, has written files of ours.

    The package index has a distribution ``tandem`` of somebody else; this client's is ``tandem-tune``. Both
    install ``import tandem``, so that files of the one replace those of the other.
    """
    for record in folder.glob("[tT]andem-*.dist-info/RECORD"):
        if _OURS.search(record.read_text(encoding="utf-8", errors="replace")):
            other = record.parent.name.split(".dist-info")[0]
            raise ImportError(
                f"the distribution {other} in {folder} is not Tandem's and has replaced files of it: "
                "pip uninstall tandem tandem-tune, then install tandem-tune again"
            )
