"""Prints what the service at the port answers; urllib would take longer to load than all of this."""

import os
import socket
import sys

print("asks for", sys.argv[2])
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as service:
    service.sendall(f"GET {sys.argv[2]} HTTP/1.0\r\n\r\n".encode())
    head, _, answer = service.makefile().read().partition("\n\n")
if " 200 " not in head:
    raise SystemExit(f"the service answers {head!r}")
print(answer)
if sys.argv[2] == "/":
    with open(os.environ["LEDGER"], "a") as ledger:  # noqa: PTH123 (pathlib takes long to load, too)
        print("window", os.environ["TANDEM_TRIAL"].rsplit("-", 1)[1], file=ledger)
