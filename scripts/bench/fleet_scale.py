#!/usr/bin/env python3
"""How the plan, the events and the leader scale with the number of nodes: a real `nlaunch run` of 8 processes on each of 64, 256
and 1024 nodes with simulated agents. One process replaces srun and plays all agents over TCP, with the protocol of
src/fleet/protocol.cpp, and through relays as in src/fleet/tree.h: every process starts, engines become ready, and learners finish when all are ready. In a second run of each
size the learner in the middle is killed, and all others fail within a tenth of a second: nlaunch must name the killed one.

With --losses, learners have one half of the nodes and engines the other. One run continues for 15 s without losses, another one
while the agents of 40 nodes with engines are lost at random moments and come back. The learners must not be affected.

Prints a table for docs/measurements.md; exits with 1 if a run did not finish as it should."""
import argparse
import asyncio
import gc
import hashlib
import hmac
import json
import os
import pathlib
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEARNERS = ENGINES = 4  # on each node
EXPERIMENT = f"""version: 1
name: fleet
nodes: NODES
weight_sync: {{backend: gloo}}
cpu_slots: true
roles:
  learner: {{kind: learner, per_node: {LEARNERS}, rendezvous: torch, command: [train, "${{role.engine.addrs_file}}"]}}
  engine: {{kind: engine, per_node: {ENGINES}, ports: [http], command: [serve, --port, "${{self.ports.http}}"],
           ready: {{http: "http://${{self.host}}:${{self.ports.http}}/health"}}}}
"""
OUTLIVES = f"""version: 1
name: fleet
pools:
  train: {{nodes: HALF}}
  serve: {{nodes: HALF}}
weight_sync: {{backend: none}}
cpu_slots: true
roles:
  learner: {{kind: learner, pool: train, per_node: {LEARNERS}, rendezvous: torch, command: [train, "${{role.engine.addrs_file}}"]}}
  engine: {{kind: engine, pool: serve, per_node: {ENGINES}, ports: [http], command: [serve, --port, "${{self.ports.http}}"], tolerate: {{min: 1}},
           ready: {{http: "http://${{self.host}}:${{self.ports.http}}/health"}}}}
"""
LOSSES, LASTS = 40, 15.0
SITE = """version: 1
name: simulated
scheduler: {kind: slurm, submit: [sbatch]}
node: {gpus: 8, cpus: 128}
"""


# --- replaces srun ---

OWN_CHALLENGE = "of an agent that believes its leader"


def digest(key, text):
    return hmac.digest(key.encode(), text.encode(), "sha256").hex()


class Agents:
    """All agents of a step in one process, or a single agent that joins later."""

    def __init__(self, step, how, hosts, alone):
        self.step, self.how, self.alone = step, how, alone
        plan = json.loads(pathlib.Path(step["plan"]).read_text())
        text = json.dumps(plan, separators=(",", ":"), ensure_ascii=False) + "\n"
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()
        self.nodes = [[] for _ in range(plan["node"]["count"])]
        for number, process in enumerate(plan["processes"]):
            self.nodes[process["node"]].append(number)
        self.learners = {number for number, process in enumerate(plan["processes"]) if process["role"] == "learner"}
        self.victim = sorted(self.learners)[len(self.learners) // 2] if how == "failure" else None
        self.own = [alone] if alone is not None else [int(host[1:]) for host in hosts]
        half = len(self.nodes) // 2
        self.lost = set(random.Random(1).sample(range(half, 2 * half), LOSSES)) if how == "losses" and alone is None else set()
        here = {process for node in self.own for process in self.nodes[node]}
        self.missing = here & self.learners if self.outlives else set(range(len(plan["processes"])))  # not ready yet
        self.all_are_there = asyncio.Event()
        if not self.missing:
            self.all_are_there.set()
        self.received = 0
        self.agents = {node: Agent(self, node) for node in self.own}

    @property
    def outlives(self):
        return self.how in ("losses", "none lost")

    async def play(self):
        await asyncio.gather(*(agent.play() for agent in self.agents.values()))

    def relay_of(self, node):
        """The first relay below the leader on the way to this node; None if it is connected to the leader itself."""
        fan_out, relay = self.step["fan_out"], None
        while self.alone is None and fan_out and node >= fan_out:
            relay = node = node // fan_out - 1
        return self.agents.get(relay)

    def ready(self, process):
        self.missing.discard(process)
        if not self.missing:
            self.all_are_there.set()


class Agent:
    def __init__(self, all_of_them, node):
        self.all, self.node, self.alive, self.begin, self.told = all_of_them, node, set(), time.monotonic(), 0
        self.gone, self.pending, self.heard = False, [], 0
        self.admitted, self.left = asyncio.Event(), asyncio.Event()
        self.relay = None

    def tell(self, type, **message):
        text = json.dumps({"type": type, **message})
        if self.relay and not self.gone:
            self.relay.queue(f"{self.node} {text}")
        elif not self.relay:
            self.queue(text)

    def queue(self, text):
        """The messages of one turn of the loop share a line, as fleet::SealedChannel sends them."""
        if not self.pending:
            asyncio.get_running_loop().call_soon(self.flush)
        self.pending.append(text)

    def flush(self):
        """Sends a line with its proof, as launch::LineProof creates it."""
        line = "\x1e".join(self.pending)
        self.pending = []
        if self.gone:
            return
        proof = digest(self.key, f"{self.told}\n{line}")
        self.to.write(f"{proof} {line}\n".encode())
        self.told += 1

    def event(self, type, **fields):
        self.tell("event", at_ms=int((time.monotonic() - self.begin) * 1000), what={"type": type, **fields})

    async def connect(self, **hello):
        """Connects to the leader and identifies this agent. Returns the reader, the writer and the challenge."""
        come, to = await asyncio.open_connection("127.0.0.1", self.all.step["port"], limit=1 << 26)
        challenge = json.loads(await come.readline())["challenge"]
        says = json.dumps({"node": self.node, "plan": self.all.fingerprint, **hello})
        proof = digest(self.all.step["token"], f"agent\n{challenge}\n{says}")
        to.write(json.dumps({"type": "signed", "says": says, "proof": proof}).encode() + b"\n")
        return come, to, challenge

    def hello(self):
        engines = [process for process in self.all.nodes[self.node] if process not in self.all.learners]
        of_learners = 2 if self.node == 0 else 0  # ports for the weight sync and the rendezvous
        return {"type": "hello", "challenge": OWN_CHALLENGE, "agent": f"a{self.node}", "host": f"n{self.node:04}",
                "address": f"10.0.{self.node // 256}.{self.node % 256}", "received": None,
                "ports": [20000 + number for number in range(len(engines) + (1 if self.all.outlives and self.node == 0 else of_learners))]}

    async def play(self):
        self.relay = self.all.relay_of(self.node)
        await (self.play_below() if self.relay else self.play_connected())

    async def play_below(self):
        """The relay is in this process: its children speak through its connection, without one of their own."""
        await self.relay.admitted.wait()
        self.relay.queue(f"+{self.node} " + json.dumps({"node": self.node, "plan": self.all.fingerprint, **self.hello()}))
        lives = asyncio.create_task(self.live())
        await self.left.wait()
        lives.cancel()

    async def play_connected(self):
        come, self.to, challenge = await self.connect(**self.hello())
        answer = json.loads(json.loads(await come.readline())["says"])
        if answer["type"] != "welcome":
            sys.exit(f"node {self.node}: {answer}")
        self.key = digest(self.all.step["token"], f"lines of agent\n{challenge}\n{OWN_CHALLENGE}")
        _, output, _ = await self.connect(type="output")
        self.admitted.set()
        lives = asyncio.create_task(self.live())
        while not self.left.is_set() and (line := await come.readline()):
            self.all.received += len(line)
            for text in line.partition(b" ")[2].split(b"\x1e"):  # without the proof
                self.read(text)
        lives.cancel()
        output.close()
        self.to.close()

    def read(self, text):
        """For this agent, or with an address in front for those that are connected through it."""
        if text.startswith(b"{"):
            return self.hear(json.loads(text))
        address, _, text = text.partition(b" ")
        message = json.loads(text)
        if address != b"*":
            return self.all.agents[int(address)].hear(message)
        for agent in self.all.agents.values():
            if agent is self or agent.relay is self:
                agent.hear(message)

    def hear(self, message):
        if self.relay and message["type"] not in ("confirm", "resume"):
            self.heard += 1
            if self.heard % 16 == 0:
                self.tell("confirm", count=self.heard)
        match message["type"]:
            case "bye":
                self.left.set()
            case "bind":
                self.tell("bound", notes=[], dropped=[], libraries={}, lock={"libraries": {}} if self.node == 0 else None, files={})
            case "perform":
                self.perform(message["action"])
            case "finish":
                self.tell("audit", json={}, lines=[], findings=0)
                self.tell("end", left_behind=[], survivors=[], last_lines=[], lost_bytes=0, log_when_decided={}, oom_kills=0)
            case "settle":
                self.tell("settled")

    def perform(self, action):
        process = action.get("process")
        match action["type"]:
            case "start":
                self.alive.add(process)
                self.event("started", process=process, pid=1000 + process)
                if process in self.all.learners:
                    self.all.ready(process)
            case "await":
                self.event("ready", process=process)
                self.all.ready(process)
            case "signal-group":
                self.ends(process, action["signal"])
            case "clean":
                self.event("cleaned", process=process, killed=[], last_lines=[], port=None)

    def ends(self, process, status):
        if process in self.alive:
            self.alive.discard(process)
            self.event("ended", process=process, status=status)

    async def live(self):
        """Learners finish on their own, or all fail if a peer is lost."""
        await self.all.all_are_there.wait()
        victim = self.all.victim
        if self.all.outlives and not self.all.learners & set(self.all.nodes[self.node]):
            if self.node in self.all.lost:
                await asyncio.sleep(3 + random.Random(self.node).random() * (LASTS - 8))
                if self.relay:
                    self.tell("gone", why="was closed", may_return=False)
                    self.left.set()
                self.gone = True
                if not self.relay:
                    self.to.transport.abort()
            return
        if self.all.outlives:
            await asyncio.sleep(LASTS)
        if victim in self.alive:
            self.ends(victim, 9)
        elif victim is not None:
            await asyncio.sleep(0.02 + 0.08 * self.node / len(self.all.nodes))
        for process in sorted(self.alive & self.all.learners if victim is None else self.alive):
            self.ends(process, 0 if victim is None else 1 << 8)


def more_files():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def play(words):
    """Replaces srun: plays the agents, and records the resources that nlaunch had used when it released the last agent of the first step."""
    more_files()
    step_file = words[words.index("--step") + 1]
    alone = int(words[words.index("--node") + 1]) if "--node" in words else None
    hosts = next(word for word in words if word.startswith("--nodelist=")).removeprefix("--nodelist=").split(",")
    gc.disable()  # or a tenth of the time goes into looking at millions of objects that stay
    agents = Agents(json.loads(pathlib.Path(step_file).read_text()), os.environ.get("SIMULATE"), hosts, alone)
    asyncio.run(agents.play())
    if 0 not in agents.own:
        return
    status = pathlib.Path(f"/proc/{os.getppid()}/status").read_text()
    stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()
    note = {"peak_kib": int(status.split("VmHWM:")[1].split()[0]), "received": agents.received,
            "cpu": (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")}
    pathlib.Path(step_file).with_name("simulated.json").write_text(json.dumps(note))


# --- the measurement ---

def lost_as_wanted(run, summary, how):
    """Returns whether this many nodes were lost and came back, and no learner restarted."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    count = {name: sum(event["event"] == name for event in events) for name in ("node-lost", "node-back")}
    learners = [event for event in events if event["event"] == "process-started" and event["process"].startswith("learner")]
    wanted = LOSSES if how == "losses" else 0
    return (summary["outcome"], count["node-lost"], count["node-back"], len(learners)) == ("finished", wanted, wanted, len({one["process"] for one in learners}))


def simulate(options, folder, nodes, how):
    """Runs once, and returns what it took."""
    (folder / "bin").mkdir(exist_ok=True)
    srun = folder / "bin/srun"
    srun.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, __file__])} --play "$@"\n')
    srun.chmod(0o755)
    (folder / "site.yaml").write_text(SITE)
    experiment = folder / "fleet.yaml"
    outlives = how in ("losses", "none lost")
    experiment.write_text((OUTLIVES if outlives else EXPERIMENT).replace("NODES", str(nodes)).replace("HALF", str(nodes // 2)))
    environment = {**os.environ, "PATH": f"{srun.parent}:{os.environ['PATH']}", "SLURM_JOB_ID": "1", "SIMULATE": how,
                   "SLURM_JOB_NODELIST": f"n[0000-{nodes - 1:04}]", "SLURM_JOB_NUM_NODES": str(nodes)}
    begin = time.monotonic()
    done = subprocess.run([options.nlaunch, "run", experiment, "--site", folder / "site.yaml", "--no-preflight", "--here",
                           "--runs-dir", folder / "runs"], env=environment, capture_output=True, text=True)
    took = time.monotonic() - begin
    run = next((folder / "runs/fleet").glob("2*"))
    if not (run / "summary.json").exists() or not (run / "attempt-0/simulated.json").exists():
        sys.exit(f"{nodes} nodes, {how}: {done.stderr}\n{(run / 'attempt-0/srun.log').read_text()}")
    summary = json.loads((run / "summary.json").read_text())
    note = json.loads((run / "attempt-0/simulated.json").read_text())
    victim = nodes * LEARNERS // 2
    right = (summary["outcome"] == "finished" if how == "success" else lost_as_wanted(run, summary, how) if outlives else
             summary["sentence"].startswith(f"learner.{victim} (rank {victim}) on n{nodes // 2:04} was killed by SIGKILL after"))
    sizes = [(run / name).stat().st_size for name in ("plan.json", "events.jsonl", "summary.json")]
    return {"nodes": nodes, "how": how, "took": took, "cpu": note["cpu"], "peak": note["peak_kib"] / 1024, "right": right,
            "sizes": sizes, "sent": note["received"], "sentence": summary["sentence"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--nodes", default="64,256,1024")
    parser.add_argument("--losses", action="store_true", help="nodes with engines are lost and come back")
    if sys.argv[1:2] == ["--play"]:
        return play(sys.argv[2:])
    options = parser.parse_args()
    print("| nodes | run | seconds | nlaunch's CPU, s | its peak, MiB | plan.json | events.jsonl | summary.json | sent to agents "
          "| right |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    wrong = 0
    for nodes in map(int, options.nodes.split(",")):
        for how in ("none lost", "losses") if options.losses else ("success", "failure"):
            with tempfile.TemporaryDirectory() as folder:
                row = simulate(options, pathlib.Path(folder), nodes, how)
            sizes = " | ".join(f"{size / 1e6:.2f} MB" for size in (*row["sizes"], row["sent"]))
            print(f"| {nodes} | {how} | {row['took']:.1f} | {row['cpu']:.2f} | {row['peak']:.0f} | {sizes} "
                  f"| {'yes' if row['right'] else 'NO: ' + row['sentence']} |", flush=True)
            wrong += not row["right"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
