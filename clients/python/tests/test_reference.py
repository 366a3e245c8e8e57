"""docs/reference/python.md, which is made of the package's own words.

Set TANDEM_UPDATE=1 to write it anew.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tandem

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "python.md"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="signatures are printed in another way by other versions")
def test_the_reference_is_of_this_package() -> None:
    text = reference()
    if os.environ.get("TANDEM_UPDATE"):
        REFERENCE.write_text(text, encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == text, "run TANDEM_UPDATE=1 pytest tests/test_reference.py"


def test_everything_public_is_described() -> None:
    missing = []
    for name in tandem.__all__:
        thing = getattr(tandem, name)
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and inspect.getdoc(thing) is None:
            missing.append(name)
        if inspect.isclass(thing) and thing.__module__.startswith("tandem"):
            missing += [f"{name}.{member}" for member, value in members(thing) if inspect.getdoc(value) is None]
    assert missing == []


def reference() -> str:
    parts = [
        "# The Python package\n\n"
        "What `help(tandem)` says, made from the package itself (`TANDEM_UPDATE=1 pytest tests/test_reference.py` in\n"
        "`clients/python`). How to use it: [python-client.md](../python-client.md).\n"
    ]
    things = [(name, getattr(tandem, name)) for name in tandem.__all__ if not name.startswith("_")]
    for name, thing in sorted(things, key=lambda pair: (inspect.isclass(pair[1]), pair[0].lower())):
        if inspect.isclass(thing):
            parts.append(of_class(name, thing))
        elif inspect.isfunction(thing):
            parts.append(f"## `{name}`\n\n```python\ntandem.{name}{signature(thing)}\n```\n\n{words(thing)}\n")
    return "\n".join(parts)


def of_class(name: str, thing: type) -> str:
    bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
    text = f"## `{name}`" + (f" ({bases})" if bases else "") + f"\n\n{words(thing)}\n"
    for member, value in members(thing):
        if isinstance(value, property):
            text += f"\n### `{name}.{member}`\n\n{words(value)}\n"
        else:
            text += f"\n### `{name}.{member}`\n\n```python\n{member}{signature(value)}\n```\n\n{words(value)}\n"
    return text


def members(thing: type) -> list[tuple[str, Any]]:
    """The public methods and properties that the class itself has, in the order in which they are written."""
    return [
        (name, getattr(value, "__func__", value))
        for name, value in vars(thing).items()
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, property))
    ]


def signature(thing: Any) -> str:
    text = str(inspect.signature(thing))
    text = re.sub(r"\((self|cls)(, )?", "(", text, count=1)
    return text.replace("'", "")


def words(thing: Any) -> str:
    """What is said of it. References of Sphinx become code."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
    return text.replace("``", "`")
