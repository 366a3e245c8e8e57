"""Takes messages of a hook: HOOK_KEY=whsec_... PORT=8080 python3 receiver.py. See docs/hooks.md."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import time

KEY, seen = base64.b64decode(os.environ["HOOK_KEY"].removeprefix("whsec_")), set()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message, at = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        mac = hmac.new(KEY, f"{message}.{at}.".encode() + body, hashlib.sha256)
        right = "v1," + base64.b64encode(mac.digest()).decode()
        fresh = abs(time.time() - int(at)) < 300
        genuine = fresh and hmac.compare_digest(right, self.headers["webhook-signature"])
        if genuine and message not in seen:
            seen.add(message)
            print(json.loads(body)["data"]["text"], flush=True)
        self.send_response(204 if genuine else 401)
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
