"""Trains nothing, in a known way: what its epochs do with their threads is named by --kind.

As a study's command it runs trials. With --pairs it is the control of what a study claimed: it runs
epochs with two numbers of threads in turn, by itself, and prints the seconds of each as JSON. With
--beside those with the second number run while another process trains with that number as well.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable


def arithmetic(rounds: int) -> int:
    total = 0
    for i in range(rounds):
        total = (total * 31 + i) % 1_000_003
    return total


BLOCK = bytes(8 << 20)


def spin(threads: int) -> None:
    arithmetic(1_000_000)


def checksum(threads: int) -> None:
    for _ in range(12):
        hashlib.sha256(BLOCK).digest()


def copy(threads: int) -> None:
    for _ in range(60):
        bytearray(BLOCK)


def children(threads: int) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-S", "-c", "sum(i * i for i in range(400_000))"], check=True)


def parallel(threads: int) -> None:
    """Gets faster with threads, as hashing leaves the interpreter's lock."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: hashlib.sha256(BLOCK).digest(), range(12)))


def serial(threads: int) -> None:
    """Takes a tenth longer with each further thread."""
    time.sleep(0.1 * (0.9 + 0.1 * threads))


def contended(threads: int) -> None:
    """Threads that hand a lock to each other get less done."""
    turn = threading.Condition()
    at = 0

    def work(own: int) -> None:
        nonlocal at
        for _ in range(6000 // threads):
            with turn:
                while at % threads != own:
                    turn.wait()
                arithmetic(60)
                at += 1
                turn.notify_all()

    pool = [threading.Thread(target=work, args=(own,)) for own in range(threads)]
    for one in pool:
        one.start()
    for one in pool:
        one.join()


def repeated(threads: int) -> None:
    """Every thread does all of the work again."""
    for _ in range(threads):
        checksum(1)


KINDS: dict[str, Callable[[int], None]] = {
    one.__name__: one for one in (spin, checksum, copy, children, parallel, serial, contended, repeated)
}


def compare(epoch: Callable[[int], None], pairs: int, threads: list[int], kind: str, beside: bool) -> None:
    seconds: dict[int, list[float]] = {count: [] for count in threads}
    epoch(threads[0])
    for _ in range(pairs):
        for count in threads:
            with contextlib.ExitStack() as ending:
                if beside and count == threads[1]:
                    other = subprocess.Popen(
                        [sys.executable, __file__, "--kind", kind, "--endless", str(count)], stdout=subprocess.PIPE
                    )
                    ending.callback(other.wait)
                    ending.callback(other.kill)
                    assert other.stdout is not None
                    other.stdout.readline()  # it trains
                began = time.perf_counter()
                epoch(count)
                seconds[count].append(time.perf_counter() - began)
    print(json.dumps({"first": seconds[threads[0]], "second": seconds[threads[1]]}))


def study(epoch: Callable[[int], None]) -> None:
    import tandem

    for trial in tandem.trials():
        for number in trial.epochs():
            epoch(int(trial.system.get("cpu_threads", 2)))
            trial.report(accuracy=(1 - (trial.params["x"] - 0.7) ** 2) * (1 - 1 / (number + 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=sorted(KINDS), required=True)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--threads", type=int, nargs=2, default=[2, 1])
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--endless", type=int, default=0)
    options = parser.parse_args()
    if options.endless > 0:
        print("begins", flush=True)
        while True:
            KINDS[options.kind](options.endless)
    elif options.pairs > 0:
        compare(KINDS[options.kind], options.pairs, options.threads, options.kind, options.beside)
    else:
        study(KINDS[options.kind])


if __name__ == "__main__":
    main()
