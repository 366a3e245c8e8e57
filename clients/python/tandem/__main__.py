"""The command line: ``python -m tandem run study.yaml``, or ``tandem-tune``, is ``tandem run study.yaml``."""

from __future__ import annotations

import os
import subprocess
import sys

from .binary import binary


def main() -> None:
    """Become the tandem program, with this process's arguments."""
    try:
        path = binary()
    except OSError as error:
        sys.exit(f"tandem: {error}: this installation has the client only; a wheel of scripts/release has both")
    if sys.platform == "win32":  # there a process that becomes another one ends for who waits for it
        sys.exit(subprocess.call([path, *sys.argv[1:]]))
    os.execv(path, ["tandem", *sys.argv[1:]])


if __name__ == "__main__":
    main()
