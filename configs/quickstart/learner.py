"""A learner in miniature: rollouts from an engine, a mean over all learners, and new weights pushed by rank 0."""
import argparse
import hashlib
import http.client
import json
import os
import socket
import struct
import sys
import time

DOUBLE = struct.Struct("!d")
TIMEOUT = 60  # seconds, for every wait on somebody else


class World:
    """All learners, in a star around rank 0 at MASTER_ADDR:MASTER_PORT."""

    def __init__(self):
        self.rank = int(os.environ["RANK"])
        self.size = int(os.environ["WORLD_SIZE"])
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.peers = self.accept(address) if self.rank == 0 else [self.connect(address)]

    def accept(self, address):
        with socket.create_server(address, backlog=self.size) as server:
            server.settimeout(TIMEOUT)
            peers = [server.accept()[0] for _ in range(self.size - 1)]
        for peer in peers:
            peer.settimeout(TIMEOUT)
        return peers

    @staticmethod
    def connect(address):
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return socket.create_connection(address, timeout=TIMEOUT)
            except OSError as error:
                if time.monotonic() > deadline:
                    sys.exit(f"rank 0 does not answer at {address[0]}:{address[1]} after {TIMEOUT} s: {error}")
                time.sleep(0.05)

    def mean(self, value):
        """The mean over all ranks, the same on each; also a barrier."""
        if self.rank == 0:
            result = (value + sum(receive(peer) for peer in self.peers)) / self.size
            for peer in self.peers:
                peer.sendall(DOUBLE.pack(result))
            return result
        self.peers[0].sendall(DOUBLE.pack(value))
        return receive(self.peers[0])


def receive(peer):
    data = b""
    while len(data) < DOUBLE.size:
        try:
            part = peer.recv(DOUBLE.size - len(data))
        except OSError as error:
            sys.exit(f"another learner does not answer: {error}")
        if not part:
            sys.exit("another learner has gone away")
        data += part
    return DOUBLE.unpack(data)[0]


def request(address, method, path, body=None, headers=None):
    """One answer of an engine, read as JSON. http.client takes no proxy from the environment."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = json.loads(answer.read())
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"engine {address} does not answer {method} {path}: {error}")
    finally:
        connection.close()
    if answer.status != 200:
        sys.exit(f"engine {address} refused {method} {path}: {content.get('error', answer.status)}")
    return content


def push_weights(engines, version, mib):
    weights = os.urandom(mib << 20)
    headers = {"X-Version": str(version), "X-Checksum": hashlib.sha256(weights).hexdigest()}
    start = time.monotonic()
    for engine in engines:
        request(engine, "POST", "/weights", weights, headers)
    took = time.monotonic() - start
    print(f"weight sync took {took:.3f}s ({mib} MiB to {len(engines)} engines, v{version})", flush=True)


def misbehave(options, rank, step):
    if step != options.steps // 2:
        return
    if rank == options.fail_rank:
        print(f"failing at step {step}, as asked for by vars.fail_rank", file=sys.stderr, flush=True)
        sys.exit(3)
    if rank == options.hang_rank:
        print(f"hanging at step {step}, as asked for by vars.hang_rank", flush=True)
        while True:
            time.sleep(3600)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", required=True, help="HOST:PORT of each, with commas")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--sync-every", type=int, default=2)
    parser.add_argument("--weights-mib", type=int, default=4)
    parser.add_argument("--step-seconds", type=float, default=0.5)
    parser.add_argument("--fail-rank", type=int, default=-1)
    parser.add_argument("--hang-rank", type=int, default=-1)
    return parser.parse_args()


def main():
    options = parse_options()
    engines = options.engines.split(",")
    world = World()
    print(f"learner {world.rank} of {world.size}, {len(engines)} engines", flush=True)
    for step in range(1, options.steps + 1):
        misbehave(options, world.rank, step)
        rollout = request(engines[world.rank % len(engines)], "GET", "/generate")
        time.sleep(options.step_seconds)
        reward = world.mean(rollout["reward"])
        print(f"step {step} reward {reward:.3f} weights v{rollout['version']}", flush=True)
        if world.rank == 0 and step % options.sync_every == 0:
            push_weights(engines, step // options.sync_every, options.weights_mib)
        world.mean(0)
    print("done", flush=True)


if __name__ == "__main__":
    main()
