"""Prints what the service at the port answers."""

import os
import sys
import urllib.request
from pathlib import Path

print("asks for", sys.argv[2])
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}", timeout=60).read().decode())
if sys.argv[2] == "/":
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        print("window", os.environ["TANDEM_TRIAL"].rsplit("-", 1)[1], file=ledger)
