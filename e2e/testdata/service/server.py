"""A service that answers with what its settings are worth, and some noise."""

import json
import os
import random
import socket
import sys
from pathlib import Path

port, threads, cache, placebo = int(sys.argv[1]), int(sys.argv[2]), 1, "placebo" in sys.argv
random.seed(int(os.environ["TANDEM_SEED"]))  # the same luck whenever the test runs


def answer(client):
    global cache
    request = client.makefile()
    asked = request.readline().split()
    while request.readline().strip():
        pass  # its headers
    if not asked:
        return  # somebody looked whether it is ready
    if asked[1].startswith("/cache/"):
        cache = int(asked[1].rsplit("/", 1)[1])
    worth = 1 if placebo else threads * (1 + cache / 64)
    told = {"tps": 100 * worth * random.gauss(1, 0.02), "p99_ms": 10 * threads, "threads": threads, "cache": cache}
    client.sendall(f"HTTP/1.0 200 OK\r\n\r\n{json.dumps(told)}".encode())


with Path(os.environ["LEDGER"]).open("a") as ledger:
    print("started", os.getpid(), file=ledger)
listener = socket.create_server(("127.0.0.1", port))
while True:
    client, _ = listener.accept()
    with client:
        answer(client)
