"""Stands in for a framework's program where there is no GPU: notes its arguments, then does what nlaunch sees of it.

An engine answers each request with 200. A driver has Ray give it all GPUs of the cluster, as a framework has, and ends.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve(options):
    ThreadingHTTPServer((options["--host"], int(options["--port"])), Healthy).serve_forever()


def take_all_gpus():
    import ray
    from ray.util.placement_group import placement_group
    ray.init(logging_level="error", log_to_driver=False)
    gpus = int(ray.cluster_resources()["GPU"])
    ray.get(placement_group([{"GPU": 1}] * gpus).ready(), timeout=60)
    print(f"Ray gave {gpus} GPUs", flush=True)


def main():
    record, arguments = sys.argv[1], sys.argv[2:]
    with open(record, "a") as out:
        out.write(json.dumps(arguments) + "\n")
    options = dict(argument.split("=", 1) for argument in arguments if argument.startswith("--") and "=" in argument)
    if "--port" in options:
        serve(options)
    else:
        take_all_gpus()


if __name__ == "__main__":
    main()
