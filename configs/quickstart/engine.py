"""An inference engine in miniature: /health, /generate, and /weights, which takes new weights and checks them."""
import argparse
import hashlib
import json
import random
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Engine:
    """The weights that are served. A push replaces them as a whole."""

    def __init__(self):
        self.lock = threading.Lock()
        self.version = 0
        self.weights = b""

    def load(self, version, weights, checksum):
        if hashlib.sha256(weights).hexdigest() != checksum:
            raise ValueError(f"the weights of version {version} arrived damaged: their checksum differs")
        with self.lock:
            self.version, self.weights = version, weights

    def generate(self):
        """A reward that rises with the version of the weights, as in a training that goes well."""
        with self.lock:
            version = self.version
        return {"version": version, "reward": round(1 - 0.8 ** (version + 1) + random.uniform(-0.02, 0.02), 3)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.path == "/generate":
            self.answer(200, self.server.engine.generate())
        else:
            self.answer(404, {"error": f"there is no {self.path}; there are /health, /generate and /weights"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/weights":
            self.answer(404, {"error": f"there is no {self.path} to post to"})
            return
        try:
            version = int(self.headers["X-Version"])
            self.server.engine.load(version, body, self.headers["X-Checksum"])
        except (TypeError, ValueError) as error:
            print(f"refused: {error}", flush=True)
            self.answer(400, {"error": str(error)})
            return
        print(f"loaded weights v{version}: {len(body) / 2**20:.1f} MiB, checksum verified", flush=True)
        self.answer(200, {"version": version})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Requests are not worth a line each."""


def stop(*_):
    print("stopping", flush=True)
    sys.exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--load-seconds", type=float, default=0.3, help="as long as loading a model takes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    print(f"loading the model ({options.load_seconds} s)", flush=True)
    time.sleep(options.load_seconds)
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    server.daemon_threads = True
    server.engine = Engine()
    print(f"serving on http://{options.host}:{options.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
