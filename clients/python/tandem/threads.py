"""The threads of the numeric libraries in this process, changed between epochs."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_NUMERIC = ("torch", "numpy", "sklearn")


class Threads:
    """Sets how many threads the libraries that this process has loaded use."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes
        self._done: tuple[Any, ...] = ()
        self.applied: Optional[int] = None
        """The number in force, of all processes of the trial here; None as long as no library took one."""

    def apply(self, wanted: Any) -> None:
        """Make it so many, unless that is done; anything but a whole number from 1 on is left alone.

        The variables are for processes started from now on: a library reads
        them when it is loaded. Loaded ones are told: PyTorch by its own
        function, OpenMP and BLAS by threadpoolctl, where that is installed.
        Processes that train together divide them.
        """
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            return
        state = (wanted, *(name in sys.modules for name in _NUMERIC))
        if state == self._done:
            return
        self._done = state
        each = max(1, wanted // self._processes)
        for name in _VARIABLES:
            os.environ[name] = str(each)
        pools, torch = _limit_pools(each), _limit_torch(each)
        if pools or torch:
            self.applied = wanted


def _limit_torch(wanted: int) -> bool:
    set_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if set_threads is None:
        return False
    set_threads(wanted)
    return True


def _limit_pools(wanted: int) -> bool:
    try:
        import threadpoolctl
    except ImportError:
        return False
    if not threadpoolctl.threadpool_info():
        return False
    threadpoolctl.threadpool_limits(wanted)  # without "with": it stays
    return True
