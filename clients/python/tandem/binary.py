"""Where the tandem program is."""

from __future__ import annotations

import os
import shutil
import sysconfig


def binary() -> str:
    """The program's path: TANDEM_BINARY, or that of this installation, or that on the PATH; OSError without one."""
    found = os.environ.get("TANDEM_BINARY") or shutil.which("tandem", path=sysconfig.get_path("scripts"))
    found = found or shutil.which("tandem")
    if not found:
        raise OSError("there is no tandem on the PATH, and TANDEM_BINARY names none")
    return found
