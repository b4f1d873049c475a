#!/usr/bin/env python3
"""Typical mistakes: each is reported with its place (a file and line, or a process), its cause, and what to type next."""
import contextlib
import dataclasses
import re
import socket
import subprocess
import sys
import unittest

from harness import CliTest

HEAD = "version: 1\nname: test\nweight_sync: {backend: gloo}\n"
LEARNER = HEAD + "roles:\n  learner:\n    kind: learner\n"
ENGINE = HEAD + "roles:\n  engine:\n    kind: engine\n    ports: [http]\n"
SLURM = "version: 1\nname: cluster\nextends: common\nscheduler: {kind: slurm, directives: {partition: main}}\nnode: {gpus: 4, arch: x86_64}\n"
PLAN = ("plan", "e.yaml", "--site", "local")
RUN = ("run", "e.yaml", "--site", "local", "--runs-dir", "runs", "--no-preflight")
CHECKED = RUN[:-1]
ON_SLURM = ("e.yaml", "--site", "cluster.yaml")
LOG = "runs/test/RUN/attempt-0/logs"
INSTALL = "install the package that provides 'nothing_of_that_name': /usr/bin/python3 -m pip install PACKAGE"
VENV = "write `venv: DIRECTORY` of an environment that has it in role 'learner' (e.yaml:5:3)"
ADDRESS = "http://127.0.0.1:PORT"

# Answers one path, on the port and of the address that it gets.
SERVER = """import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == sys.argv[3] else 404)
        self.end_headers()
    def log_message(self, *_):
        pass
print("up", flush=True)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Answer).serve_forever()
"""
LISTEN = "import socket, sys\nsocket.create_server(('', int(sys.argv[2])))\n"


def fails_with(*lines):
    """A program that stands for one that ends with these lines."""
    return f"import sys\nsys.exit({chr(10).join(lines)!r})\n"


@dataclasses.dataclass
class Mistake:
    name: str
    files: dict
    command: tuple
    place: str  # within the lines of the cause or of what to type next
    cause: str  # whole lines, in any order
    next: str  # whole lines
    code: int = 65
    env: dict = dataclasses.field(default_factory=dict)
    holds: str = ""  # the port that another program holds, as the files name it


def run_of(name, command, lines, place, cause, next, **more):
    """A learner that ends with these lines of a framework's."""
    return Mistake(name, {"e.yaml": LEARNER + f"    command: {command}\n", "t.py": fails_with(*lines)}, RUN, place, cause, next, 1, **more)


def never_ready(name, command, ready, cause, next, place="e.yaml:9:12", **more):
    return Mistake(name, {"e.yaml": ENGINE + f"    command: {command}\n    ready: {ready}\n", "serve.py": SERVER}, RUN, place, cause, next, 72, **more)


MISTAKES = [
    Mistake("YAML: a list that is not closed", {"e.yaml": LEARNER + "    command: [python3, train.py\n    gpus: 1\n"}, PLAN, "e.yaml:7:14",
            "e.yaml:7:14: error: the list that opens here is not closed [config.syntax]", "hint: close it with ]"),
    Mistake("unknown key", {"e.yaml": LEARNER + "    gpu: 1\n    command: [python3, train.py]\n"}, PLAN, "e.yaml:7:5",
            "e.yaml:7:5: error: unknown key 'gpu' in 'roles.learner' [config.unknown-key]", "hint: did you mean 'gpus'?"),
    Mistake("wrong unit", {"e.yaml": HEAD + "walltime: {before: 10}\nroles: {learner: {kind: learner, command: [t]}}\n"}, PLAN, "e.yaml:4:20",
            "e.yaml:4:20: error: 'walltime.before': '10' has no unit: write 10s or 10m [config.unit]",
            "e.yaml:4:20: error: 'walltime.before': '10' has no unit: write 10s or 10m [config.unit]"),
    Mistake("too many GPUs", {"e.yaml": "version: 1\nname: test\nroles:\n  learner: {kind: learner, per_node: 4, gpus: 1, command: [t]}\n"
                              "  engine: {kind: engine, gpus: 4, command: [s, --tensor-parallel-size, 4]}\n"}, (*PLAN, "--set", "site.node.gpus=4"), "e.yaml:5:32",
            "e.yaml:5:32: error: role 'engine': 1 process of 4 GPUs does not fit on 1 node × 4 GPUs: none fit, and 0 GPUs stay idle [plan.does-not-fit]\n"
            "note: e.yaml:4:3: role 'learner' uses 4 GPUs on each node",
            "hint: --set roles.learner.per_node=2 --set roles.engine.gpus=2, with `--tensor-parallel-size 2` in its command (2 GPUs for 'learner' on each node, "
            "2 for 'engine')"),
    run_of("the path of the model does not exist", "[python3, t.py]",
           ["OSError: /data/models/none is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"], "learner.0.log:1",
           f"$FOLDER/{LOG}/learner.0.log:1: error: the model directory /data/models/none does not exist on that node: transformers then takes it for the name of "
           "a repository [model-not-found]",
           "fix: run ls on /data/models/none on that node, and in the container (is it mounted?); a relative path starts at the working directory of the process"),
    run_of("a gated model without a token", "[python3, t.py]",
           ["huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-x)",
            "Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/config.json."], "learner.0.log:2",
           f"$FOLDER/{LOG}/learner.0.log:2: error: the repository meta-llama/Llama-3.1-8B of the Hugging Face Hub is gated, and the process has no token that may "
           "read it [hub-access]",
           "fix: accept its terms on https://huggingface.co/meta-llama/Llama-3.1-8B, and set HF_TOKEN where nlaunch is called, or name it in the experiment: "
           "secrets: {HF_TOKEN: env}"),
    Mistake("wrong venv: it does not exist", {"e.yaml": LEARNER + "    venv: /no/venv\n    command: [python3, t.py]\n"}, RUN, "e.yaml:7:11",
            "error: learner: the venv '/no/venv' (e.yaml:7:11) does not exist [launch.venv]", "hint: create it: python3 -m venv /no/venv"),
    Mistake("wrong venv: it lacks a module", {"e.yaml": LEARNER + "    command: [/usr/bin/python3, -c, import nothing_of_that_name]\n"}, RUN, "(e.yaml:5:3)",
            f"$FOLDER/{LOG}/learner.0.log:LINE: error: the Python module 'nothing_of_that_name' is not installed for /usr/bin/python3 (Python VERSION), which runs "
            "learner.0; role 'learner' (e.yaml:5:3) sets no `venv` [import-error]", f"fix: {VENV}, or {INSTALL}", 1),
    Mistake("wrong venv: it lacks what python -m runs", {"e.yaml": LEARNER + "    command: [/usr/bin/python3, -m, nothing_of_that_name]\n"}, RUN, "(e.yaml:5:3)",
            f"$FOLDER/{LOG}/learner.0.log:1: error: the Python module 'nothing_of_that_name' is not installed for /usr/bin/python3 (Python VERSION), which runs "
            "learner.0; role 'learner' (e.yaml:5:3) sets no `venv` [import-error]", f"fix: {VENV}, or {INSTALL}", 1),
    Mistake("wrong venv: a shell does not find the program", {"e.yaml": LEARNER + "    command: [bash, -c, no-such-server serve]\n"}, RUN, "(e.yaml:5:3)",
            f"$FOLDER/{LOG}/learner.0.log:1: error: the program 'no-such-server' is not on the PATH of learner.0; role 'learner' (e.yaml:5:3) sets no `venv` "
            "[entrypoint-missing]",
            "fix: write `venv: DIRECTORY` of the environment that has it in role 'learner' (e.yaml:5:3), load its module in the site profile "
            "(`modules: {load: [NAME]}`), or give its full path in its command (e.yaml:7:15)", 127),
    Mistake("wrong venv: nlaunch does not find the program", {"e.yaml": LEARNER + "    command: [no-such-server, serve]\n"}, RUN, "(command: e.yaml:7:15)",
            "error: learner: program 'no-such-server' was not found in PATH (/usr/local/bin:/usr/bin:/bin) (command: e.yaml:7:15) [launch.program]",
            "hint: write `venv: DIRECTORY` in role 'learner' (e.yaml:5:3), load its module in the site profile (`modules: {load: [NAME]}`), or give its full path"),
    Mistake("port in use: the preflight sees it", {"e.yaml": ENGINE + "    command: [python3, serve.py, --port, \"$HELD\"]\n"}, CHECKED, "(e.yaml:5:3)",
            "fail ports engine.0: port HELD: Address already in use, held by holder.py (pid PID, user ME) (expected free)",
            "     fix (user): stop it with `kill PID`, or write `ports: [http]` in role 'engine' (e.yaml:5:3) and use ${self.ports.http} in its command "
            "(e.yaml:8:15)", 69, holds="$HELD"),
    Mistake("port in use: the program reports it", {"e.yaml": ENGINE + "    command: [python3, listen.py, --port, \"$HELD\"]\n", "listen.py": LISTEN}, RUN,
            "(e.yaml:8:15)",
            f"$FOLDER/{LOG}/engine.0.log:LINE: error: engine.0 could not listen on port HELD, which is held by holder.py (pid PID, user ME) of run other-1; the port is from its command (e.yaml:8:15) "
            "[port-in-use]",
            "fix: stop that run with `nlaunch stop /runs/other-1`, or write `ports: [http]` in role 'engine' (e.yaml:5:3) and use ${self.ports.http} in its "
            "command (e.yaml:8:15)", 1, holds="$HELD of a run"),
    never_ready("port in use: another program answers the check", "[sleep, 60]", "{tcp: \"${self.host}:$HELD\", timeout: 1s}",
                f"$FOLDER/{LOG}/engine.0.log: error: port HELD, on which engine.0 is checked, is held by holder.py (pid PID, user ME) [port-in-use]",
                "fix: stop it with `kill PID`, or write `ports: [http]` in role 'engine' (e.yaml:5:3) and use ${self.ports.http} in its command (e.yaml:8:15) and "
                "in `ready` (e.yaml:9:12)", holds="$HELD"),
    Mistake("the form of the time limit", {"e.yaml": LEARNER + "    command: [t]\nslurm: {time: 24h}\n", "cluster.yaml": SLURM}, ("plan", *ON_SLURM), "e.yaml:8:15",
            "e.yaml:8:15: error: '24h' is not a time limit of Slurm [plan.slurm-value]", "hint: write \"24:00:00\""),
    Mistake("no account", {"e.yaml": LEARNER + "    command: [\"true\"]\n", "cluster.yaml": SLURM, "bin/scontrol": "#!/bin/sh\nexit 1\n",
                           "bin/sbatch": "#!/bin/sh\necho 'sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified' >&2\n"
                                         "exit 1\n"}, ("run", *ON_SLURM, "--runs-dir", "runs"), "cluster.yaml:4:50",
            "error: $FOLDER/bin/sbatch exited with code 1: sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified "
            "[launch.submit]\nnote: --partition=main is from cluster.yaml:4:50",
            "hint: write `slurm: {account: PROJECT}` in the experiment, or --set slurm.account=PROJECT; `sacctmgr show associations user=$USER "
            "format=account%30,partition` lists yours; the script: $FOLDER/runs/test/RUN/job.sbatch"),
    Mistake("an unset variable", {"e.yaml": LEARNER + "    command: [python3, t.py, \"${env.MODEL_DIR}/x\"]\n"}, PLAN, "e.yaml:7:31",
            "e.yaml:7:31: error: '${env.MODEL_DIR}' is not set in nlaunch's environment: set it, or give a default with ${env.MODEL_DIR:-VALUE} [plan.reference]",
            "e.yaml:7:31: error: '${env.MODEL_DIR}' is not set in nlaunch's environment: set it, or give a default with ${env.MODEL_DIR:-VALUE} [plan.reference]"),
    Mistake("an unset variable: no shell expands it", {"e.yaml": LEARNER + "    command: [python3, t.py, \"$MODEL_DIR/x\"]\n"}, PLAN, "(e.yaml:7:30)",
            "warning: role 'learner' passes '$MODEL_DIR/x' (e.yaml:7:30) as it is, since no shell starts its command; write ${env.MODEL_DIR}",
            "warning: role 'learner' passes '$MODEL_DIR/x' (e.yaml:7:30) as it is, since no shell starts its command; write ${env.MODEL_DIR}", 0),
    Mistake("LD_PRELOAD in env", {"e.yaml": LEARNER + "    env: {LD_PRELOAD: /x.so}\n    command: [t]\n"}, PLAN, "e.yaml:7:11",
            "e.yaml:7:11: error: LD_PRELOAD cannot be set in an environment: use the role's `preload:` [config.env-preload]",
            "hint: remove it here, and write `preload: [NAME]` in the role, for a library of the site profile: `libraries: {NAME: {path: /opt/x/libx.so}}`"),
    Mistake("CUDA_VISIBLE_DEVICES in env", {"e.yaml": LEARNER + "    env: {CUDA_VISIBLE_DEVICES: \"0,1\"}\n    command: [t]\n"}, PLAN, "e.yaml:7:11",
            "e.yaml:7:11: error: CUDA_VISIBLE_DEVICES is set by nlaunch for each process [config.env-owned]",
            "hint: remove it here: each process gets as many GPUs as `gpus` of its role says; to use only some of this machine's, set it where you call nlaunch"),
    Mistake("an interface that does not exist", {"e.yaml": LEARNER + "    env: {NCCL_SOCKET_IFNAME: hsn7, GLOO_SOCKET_IFNAME: hsn7}\n    command: [\"true\"]\n"}, CHECKED,
            "(e.yaml:7:11)",
            "warn interfaces learner: NCCL_SOCKET_IFNAME=hsn7 (e.yaml:7:11) names no interface of this node (expected one of NAMES)\n"
            "     fix (user): write one of them there, or its prefix, or remove the variable",
            "fail interfaces learner: GLOO_SOCKET_IFNAME=hsn7 (e.yaml:7:37) names no interface of this node (expected one of NAMES)\n"
            "     fix (user): write one of them there, or remove the variable", 69),
    Mistake("a command that is not executable", {"e.yaml": LEARNER + "    command: [./train.sh]\n", "train.sh": "#!/bin/sh\n"}, RUN, "(command: e.yaml:7:15)",
            "error: learner: '$FOLDER/./train.sh' is not executable (command: e.yaml:7:15) [launch.program]",
            "hint: make it executable with chmod +x, or name the program that reads it: [bash, ./train.sh]"),
    Mistake("a relative path", {"e.yaml": HEAD + "workdir: sub\nroles:\n  learner:\n    kind: learner\n    command: [python3, train.py]\n", "train.py": "", "sub/x": ""}, RUN,
            "(e.yaml:4:10)",
            f"$FOLDER/{LOG}/learner.0.log:1: error: the script $FOLDER/sub/train.py does not exist: relative paths of learner.0 start at `workdir: $FOLDER/sub` "
            "(e.yaml:4:10) [entrypoint-missing]",
            "fix: correct the path in its command (e.yaml:8:15), or `workdir` (e.yaml:4:10); there is $FOLDER/train.py", 2),
    run_of("no rendezvous", "[python3, t.py]",
           ["ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set"], "(e.yaml:5:3)",
           f"$FOLDER/{LOG}/learner.0.log:1: error: learner.0 was not given its rank and rendezvous address: role 'learner' (e.yaml:5:3) has no `rendezvous: torch` "
           "[rendezvous-environment]",
           "fix: write `rendezvous: torch` in role 'learner' (e.yaml:5:3): nlaunch then sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT"),
    Mistake("an engine without a check", {"e.yaml": HEAD + "start: [[engine], [learner]]\nroles:\n  engine: {kind: engine, command: [vllm, serve, m]}\n"
                                          "  learner: {kind: learner, command: [t]}\n"}, PLAN, "(e.yaml:6:3)",
            "warning: engine 'engine' (e.yaml:6:3) has no `ready`: the next stage starts at once, before it answers; write `ready: vllm` in it",
            "warning: engine 'engine' (e.yaml:6:3) has no `ready`: the next stage starts at once, before it answers; write `ready: vllm` in it", 0),
    never_ready("never ready: another path answers", "[python3, serve.py, 0.0.0.0, \"${self.ports.http}\", /health/]",
                "{http: \"http://${self.host}:${self.ports.http}/healthz\", timeout: 5s}",
                f"engine.0 was not ready in time ({ADDRESS}/healthz: answered 404)\n"
                "its check: `http: http://${self.host}:${self.ports.http}/healthz` (e.yaml:9:12); its timeout: 5s (e.yaml:9:78)\n"
                f"$FOLDER/{LOG}/engine.0.log:1: error: the server of engine.0 is up, but GET /healthz answered 404; GET /health/ answers there [not-ready]",
                "fix: write `http: \"http://${self.host}:${self.ports.http}/health/\"` in `ready` (e.yaml:9:12)"),
    never_ready("never ready: another port answers", "[python3, serve.py, 0.0.0.0, \"$FREE\", /health]",
                "{http: \"http://${self.host}:${self.ports.http}/health\", timeout: 5s}",
                f"$FOLDER/{LOG}/engine.0.log:1: error: engine.0 listens on port FREE, not on port PORT, which is checked; GET /health answers there [not-ready]",
                "fix: pass it that port, for example `--port, \"${self.ports.http}\"`, in its command (e.yaml:8:15); or write "
                "`http: \"http://${self.host}:FREE/health\"` in `ready` (e.yaml:9:12)"),
    never_ready("never ready: it still loads",
                "[python3, -c, \"import time; print('Loading safetensors checkpoint shards:  45% Completed | 5/11', flush=True); time.sleep(60)\"]",
                "{server: vllm, timeout: 3s}",
                "its check: `vllm: http://${self.host}:${self.ports.http}/health` (e.yaml:9:12); its timeout: 3s (e.yaml:9:36)\n"
                f"$FOLDER/{LOG}/engine.0.log:1: error: engine.0 was still loading after 3s: Loading safetensors checkpoint shards:  45% Completed | 5/11 [not-ready]",
                "fix: write `timeout: 6s` in its `ready` (e.yaml:9:36)"),
    never_ready("never ready: nothing listens", "[sleep, 60]", "{http: \"http://${self.host}:${self.ports.http}/health\", timeout: 1s}",
                f"$FOLDER/{LOG}/engine.0.log: error: engine.0 listens on no port after 1s ({ADDRESS}/health: Connection refused) [not-ready]",
                "fix: see its last lines; if it is a server, pass it that port, for example `--port, \"${self.ports.http}\"`, in its command (e.yaml:8:15); if it "
                "needs longer, write `timeout: 2s` in its `ready` (e.yaml:9:77)", place="(e.yaml:8:15)"),
    Mistake("an unknown role in a reference", {"e.yaml": LEARNER + "    command: [t, \"${role.engin.addrs}\"]\n  engine: {kind: engine, ports: [http], command: [s]}\n"},
            PLAN, "e.yaml:7:19", "e.yaml:7:19: error: unknown name '${role.engin.addrs}': did you mean '${role.engine.addrs}'? [plan.reference]",
            "e.yaml:7:19: error: unknown name '${role.engin.addrs}': did you mean '${role.engine.addrs}'? [plan.reference]"),
    Mistake("a disk that is full", {"e.yaml": LEARNER + "    command: [python3, -c, \"open('/dev/full', 'wb', buffering=0).write(b'x')\"]\n"}, RUN, "learner.0.log:LINE",
            f"$FOLDER/{LOG}/learner.0.log:LINE: error: a disk is full [disk-full]",
            "fix: free some space or use another directory: check df -h and df -i where the line says (checkpoints, /tmp, caches)", 1),
    Mistake("a walltime that is too short", {"e.yaml": LEARNER + "    command: [t]\nwalltime: {before: 10m}\nslurm: {time: \"00:05:00\"}\n", "cluster.yaml": SLURM},
            ("plan", *ON_SLURM), "(e.yaml:9:15)",
            "error: the time limit of the job, 00:05:00 (e.yaml:9:15), is not longer than `walltime.before`, 10m: the end would be announced at once [plan.walltime]",
            "hint: write `time: \"00:20:00\"` or more, or a shorter `before` in `walltime`"),
    Mistake("no such site", {"e.yaml": LEARNER + "    command: [t]\n", "own/ours.yaml": SLURM}, ("plan", "e.yaml", "--site", "our", "--site-dir", "own"), "searched own",
            "error: site profile 'our' not found [site.not-found]\n"
            "note: searched own, site-profiles (does not exist), $FOLDER/.config/nlaunch/sites (does not exist), INSTALLED and the built-in profiles; --site-dir "
            "DIRECTORY and NLAUNCH_SITE_PATH add directories", "hint: did you mean 'ours'? available: NAMES"),
    Mistake("a secret that is not set", {"e.yaml": HEAD + "secrets: {HF_TOKEN: env}\nroles: {learner: {kind: learner, command: [\"true\"]}}\n"}, RUN, "(e.yaml:4:11)",
            "error: secret HF_TOKEN (e.yaml:4:11): the variable HF_TOKEN is not set in the environment of nlaunch [launch.secret]",
            "hint: export HF_TOKEN=... before you call nlaunch, or read it from a file: secrets: {HF_TOKEN: {file: PATH}}"),
]


class Mistakes(CliTest):
    def free_port(self):
        with socket.create_server(("", 0)) as server:
            return server.getsockname()[1]

    def hold(self, port, of_a_run):
        """Another program that listens on the port."""
        script = self.folder / "holder.py"
        script.write_text("import socket, time\nserver = socket.create_server(('', %d))\nprint('up', flush=True)\ntime.sleep(100)\n" % port)
        run = {"NLAUNCH_RUN_ID": "other-1", "NLAUNCH_RUN_DIR": "/runs/other-1"} if of_a_run else {}
        holder = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env={**self.env, **run})
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        holder.stdout.readline()
        return holder.pid

    def made(self, mistake, held, free):
        for name, text in mistake.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("$HELD", str(held)).replace("$FREE", str(free)))
            if name.startswith("bin/"):
                path.chmod(0o755)

    def lines_of(self, mistake):
        """What nlaunch says of it, without what differs from one run to the next."""
        held, free = self.free_port(), self.free_port()
        self.made(mistake, held, free)
        pid = self.hold(held, mistake.holds.endswith("of a run")) if mistake.holds else 0
        env = {"PATH": f"{self.folder}/bin:{self.env['PATH']}"} if any(name.startswith("bin/") for name in mistake.files) else {}
        done = self.nlaunch(*mistake.command, cwd=self.folder, env=env)
        self.assertEqual(done.returncode, mistake.code, done.stdout + done.stderr)
        said = self.normal(done.stdout + done.stderr).replace(str(self.folder.resolve()), "$FOLDER")
        for pattern, name in ((rf"\b{held}\b", "HELD"), (rf"\b{free}\b", "FREE"), (rf"\b{pid}\b" if pid else "$^", "PID"), (r"\b\d{8}-\d{6}-\d+\b", "RUN"),
                              (r"(127\.0\.0\.1:|not on port )\d{4,5}\b", r"\1PORT"), (r"\.log:([3-9]|\d\d)\b", ".log:LINE"), (r"\(Python [\d.]+\)", "(Python VERSION)"), (r"user \w[\w.-]*\)", "user ME)"),
                              (r"\(expected one of [^)]*\)", "(expected one of NAMES)"), (r"(available: ).*", r"\1NAMES"),
                              (r"\S+/share/nlaunch/sites( \(does not exist\))?", "INSTALLED")):
            said = re.sub(pattern, name, said)
        return said

    def test_each_is_told_with_its_place_its_cause_and_what_to_type(self):
        for mistake in MISTAKES:
            with self.subTest(mistake.name), contextlib.ExitStack() as stack:
                self.setUp()
                stack.callback(self.doCleanups)
                said = self.lines_of(mistake)
                for line in (mistake.cause + "\n" + mistake.next).splitlines():
                    self.assertIn(f"\n{line}\n", f"\n{said}\n")
                self.assertIn(mistake.place, mistake.cause + mistake.next)


if __name__ == "__main__":
    unittest.main()
