"""A service that answers with what its settings are worth, and some noise."""

import json
import os
import random
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

port, threads, cache, placebo = int(sys.argv[1]), int(sys.argv[2]), 1, "placebo" in sys.argv
random.seed(int(os.environ["TANDEM_SEED"]))  # the same luck whenever the test runs


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        global cache
        if self.path.startswith("/cache/"):
            cache = int(self.path.rsplit("/", 1)[1])
        worth = 1 if placebo else threads * (1 + cache / 64)
        told = {"tps": 100 * worth * random.gauss(1, 0.02), "p99_ms": 10 * threads, "threads": threads, "cache": cache}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *_):
        pass


with Path(os.environ["LEDGER"]).open("a") as ledger:
    print("started", os.getpid(), file=ledger)
HTTPServer(("127.0.0.1", port), Handler).serve_forever()
