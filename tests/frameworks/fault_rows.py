"""The rows of the fault matrix: what is done, and what the truth about it is."""

import contextlib
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest
import urllib.request

from faults import Row

API_SERVER, ENGINE_CORE, WORKER = "", "VLLM::EngineCore", "VLLM::Worker"


def send(number, process, pattern=""):
    """Sends a signal to a process in the tree of a role's, in the middle of the training."""

    def fault(run):
        run.progress()
        run.pid = run.find(process, pattern)
        run.kill(run.pid, number)

    return fault


def to_nlaunch(number):
    def fault(run):
        run.progress()
        run.nlaunch.send_signal(number)

    return fault


def ended(doing, number, cause, words):
    """Makes rows in which a signal ends a process."""

    def row(what, process, pattern, title, **more):
        return Row(
            f"{doing} {what}",
            send(number, process, pattern),
            culprit=rf"{title}.*\bpid {{pid}}\b.*({words})",
            cause=cause,
            **{"code": 1, "first": process, **more},
        )

    return row


killed = ended("kill -9 of", signal.SIGKILL, "process-killed", "SIGKILL|killed")
terminated = ended("SIGTERM to", signal.SIGTERM, "process-terminated", "SIGTERM|terminated")


def stopped(what, process, pattern, title, **more):
    """The stall is seen after 10 s, and looked at for a few more."""
    return Row(
        f"SIGSTOP of {what}",
        send(signal.SIGSTOP, process, pattern),
        first=process,
        culprit=rf"stopped.*{title}.*\bpid {{pid}}\b",
        cause="process-stopped",
        code=124,
        seconds=25,
        fix="SIGCONT",
        **more,
    )


def at_start(run):
    """The fault is in the settings."""
    run.wait("the start", lambda: run.events("process-started"))


def take_port(run):
    """Another program takes the engine's port between nlaunch's choice and vLLM's start."""
    bound = run.wait("the choice of ports", lambda: next(iter(run.path.glob("attempt-0/bound.*.json")), None))
    port = int(re.search(r'"--port=(\d+)"', bound.read_text())[1])
    run.holds.enter_context(socket.create_server(("127.0.0.1", port)))


def pause(run):
    """As a trainer does before it sends weights; this one never comes back to resume."""
    run.progress()
    address = (run.path / "attempt-0/addrs/engine").read_text().strip()
    urllib.request.urlopen(urllib.request.Request(f"http://{address}/pause?mode=keep", method="POST")).read()


@contextlib.contextmanager
def gated_hub(run):
    """A hub on this machine that answers as Hugging Face's does for a model that wants a consent."""

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(401)
            self.send_header("X-Error-Code", "GatedRepo")
            self.send_header(
                "X-Error-Message", "Access to model somebody/gated is restricted. You must have access to it."
            )
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever).start()
        yield ["env", f"HF_ENDPOINT=http://127.0.0.1:{server.server_port}"]
        server.shutdown()


@contextlib.contextmanager
def no_tokenizer(run):
    shutil.copytree(
        run.settings["vars.other_model"],
        run.folder / "no-tokenizer",
        ignore=shutil.ignore_patterns("*token*", "*.jinja"),
    )
    yield []


@contextlib.contextmanager
def small_disk(run):
    """Checkpoints go to a file system of 4 MiB, which nlaunch and what it starts have for themselves."""
    (run.folder / "small").mkdir()
    yield ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=4m small {run.folder}/small && exec "$@"', "-"]


@contextlib.contextmanager
def small_memory(run):
    """nlaunch and what it starts have 6 GiB, as in a job of Slurm."""
    group = pathlib.Path(
        "/sys/fs/cgroup/memory" if os.path.isdir("/sys/fs/cgroup/memory") else "/sys/fs/cgroup",
        f"nlaunch-faults-{os.getpid()}",
    )
    try:
        group.mkdir()
        limit = "memory.limit_in_bytes" if (group / "memory.limit_in_bytes").exists() else "memory.max"
        (group / limit).write_text(str(6 << 30))
    except OSError as error:
        raise unittest.SkipTest(f"no memory limit can be set here: {error}")
    yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "-"]
    group.rmdir()


@contextlib.contextmanager
def broken_compile_cache(run):
    """What torch.compile has kept is cut off, as on a disk that was full."""
    run.env["VLLM_CACHE"] = str(run.folder / "cache")
    subprocess.run(
        run.command("first", **{"vars.steps": 1}), env=run.env, check=True, capture_output=True, cwd=run.folder
    )
    for path in (run.folder / "cache").rglob("torch_compile_cache/**/*"):
        if path.is_file():
            os.truncate(path, path.stat().st_size // 2)
    yield []


def engine_start(what, cause, code=1, seconds=60, **more):
    """What vLLM says and nlaunch has to understand; the time is from the start, most of it imports."""
    return Row(what, at_start, first="engine.0", culprit=r"engine\.0", cause=cause, code=code, seconds=seconds, **more)


def training(run):
    """The fault is in the learner, in step 3."""
    run.progress()


def learner_fault(what, fault, cause, code=1, seconds=60, settings={}, **more):
    return Row(
        what,
        training,
        first="learner.0",
        culprit=r"learner\.0",
        cause=cause,
        code=code,
        seconds=seconds,
        **{**more, "settings": {"vars.fault": fault, **settings}},
    )


RAY = {"experiment": "ray.yaml"}
RAYLET, GCS, RAY_WORKER = r"\S*/raylet ", r"\S*/gcs_server ", "ray::WorkerDict"


def send_in_ray(number, pattern):
    def fault(run):
        run.progress("trainer.0", 15, r"step (\d+)")  # three seconds: a worker is known by the second look at it, a second apart
        run.pid = run.find("ray-head.0", pattern)
        run.kill(run.pid, number)

    return fault


def ray_rows(name, what, pattern, first, title):
    """The three rows of one of Ray's processes."""
    more = {"experiment": "ray.yaml", "first": first}
    yield f"{name}_killed", Row(
        f"kill -9 of {what}",
        send_in_ray(signal.SIGKILL, pattern),
        code=1,
        seconds=15,
        cause="process-killed",
        culprit=rf"{title}.*\bpid {{pid}}\b.*(SIGKILL|killed)",
        **more,
    )
    yield f"{name}_terminated", Row(
        f"SIGTERM to {what}",
        send_in_ray(signal.SIGTERM, pattern),
        code=(1, 124),  # `ray start --block` takes that for a good end and waits on
        seconds=25,
        cause="process-terminated",
        # By Ray's own words it has no "ray::".
        culprit=rf"{title.removeprefix('ray::')}.*\bpid {{pid}}\b",
        **{**more, "first": rf"trainer\.0|{first}"},
    )
    yield f"{name}_stopped", Row(
        f"SIGSTOP of {what}",
        send_in_ray(signal.SIGSTOP, pattern),
        code=124,
        seconds=25,
        cause="process-stopped",
        fix="SIGCONT",
        culprit=rf"stopped.*{title}.*\bpid {{pid}}\b",
        **more,
    )


def gloo_row(what, fault, culprit, cause, **more):
    def wait(run):
        run.progress("learner.0", 4, r"step (\d+)")

    return Row(
        what,
        wait,
        culprit=culprit.replace(".", r"\."),
        cause=cause,
        experiment="gloo.yaml",
        settings={"vars.fault": fault},
        **{"code": 124, "seconds": 25, "first": culprit, **more},
    )


LOADED = {"watch.stall": "60s"}  # on a machine with other work the end of a Python takes more than 10 s
ROWS = {
    "healthy": Row("nothing", lambda run: run.progress(), blameless=True, settings={"vars.steps": 5, **LOADED}),
    "api_server_killed": killed("vLLM's API server", "engine.0", API_SERVER, "API ?[Ss]erver", code=137),
    # The request of the learner fails before the server has ended, or after.
    "engine_core_killed": killed("VLLM::EngineCore", "engine.0", ENGINE_CORE, "EngineCore", first=r"(engine|learner)\.0"),
    "engine_core_stopped": stopped(
        "VLLM::EngineCore; /health is answered, completions are not", "engine.0", ENGINE_CORE, "EngineCore"
    ),
    "worker_killed": killed("VLLM::Worker", "engine.0", WORKER, "Worker", first=r"(engine|learner)\.0"),
    "worker_stopped": stopped("VLLM::Worker", "engine.0", WORKER, "Worker"),
    "api_server_stopped": stopped("vLLM's API server", "engine.0", API_SERVER, "API ?[Ss]erver"),
    # The learner's request fails before the server has ended, or after.
    "engine_core_terminated": terminated(
        "VLLM::EngineCore", "engine.0", ENGINE_CORE, "EngineCore", first=r"(engine|learner)\.0", seconds=25
    ),
    "worker_terminated": terminated("VLLM::Worker", "engine.0", WORKER, "Worker", first=r"(engine|learner)\.0"),
    # With a request under way vLLM ends its engine core and then waits for the connection to close, for ever.
    "api_server_terminated": terminated(
        "vLLM's API server", "engine.0", API_SERVER, "API ?[Ss]erver", code=(1, 124), seconds=25
    ),
    "healthy_sigterm": Row("SIGTERM to nlaunch", to_nlaunch(signal.SIGTERM), blameless=True, code=143),
    "healthy_ctrl_c": Row("SIGINT to nlaunch", to_nlaunch(signal.SIGINT), blameless=True, code=130),
    "learner_killed": killed("the learner", "learner.0", "", "learner.0", code=137),
    "learner_stopped": stopped("the learner", "learner.0", "", "learner.0"),
    "learner_terminated": terminated("the learner", "learner.0", "", "learner.0", code=143),
    "model_path_wrong": engine_start(
        "a model path that does not exist",
        "model-not-found",
        settings={"vars.served_model": "/no/such/model"},
        text="/no/such/model",
    ),
    "model_offline": engine_start(
        "a model that is not in the cache, with HF_HUB_OFFLINE=1",
        "hub-unreachable",
        settings={"vars.served_model": "nobody/no-such-model"},
        fix="HF_HUB_OFFLINE",
    ),
    "hub_unreachable": engine_start(
        "a hub that cannot be reached",
        "hub-unreachable",
        settings={
            "vars.served_model": "nobody/no-such-model",
            "env.HF_HUB_OFFLINE": "0",
            "env.HF_ENDPOINT": "http://127.0.0.1:9",
        },
        seconds=120,
        fix="HF_ENDPOINT",
    ),
    "model_gated": engine_start(
        "a model without access",
        "hub-access",
        within=gated_hub,
        settings={"vars.served_model": "somebody/gated", "env.HF_HUB_OFFLINE": "0"},
        fix="HF_TOKEN|token",
    ),
    # transformers 5 makes an empty tokenizer of the configuration, with which vLLM starts; it has no chat template.
    "tokenizer_missing": Row(
        "a model without a tokenizer",
        at_start,
        first="learner.0",
        culprit=r"learner\.0",
        cause="chat-template-missing",
        fix="tokenizer",
        code=1,
        seconds=120,
        settings={"vars.model": "FOLDER/no-tokenizer"},
        within=no_tokenizer,
    ),
    "argument_unknown": engine_start(
        "an argument that vLLM does not know",
        "wrong-arguments",
        code=2,
        settings={"vars.engine_option": "--no-such-option=1"},
        text="no-such-option",
    ),
    "engine_module_missing": engine_start(
        "a worker extension that is not installed",
        "import-error",
        settings={"vars.engine_option": "--worker-extension-cls=no_such_package.Extension"},
        text="no_such_package",
    ),
    "kv_cache_too_small": engine_start(
        "a KV cache that does not hold one sequence",
        "kv-cache-too-small",
        text="max seq len",
        settings={
            "vars.max_model_len": 4000000,
            "vars.engine_option": "'--hf-overrides={\"max_position_embeddings\": 4000000}'",
        },
        fix="max[_-]model[_-]len",
    ),
    # vLLM and PyTorch say so, with a traceback, and compile again.
    "compile_cache_broken": Row(
        "what torch.compile has kept is damaged",
        within=broken_compile_cache,
        blameless=True,
        settings={"vars.eager": "--no-enforce-eager", "vars.steps": 5, **LOADED},
    ),
    "port_taken": Row(
        "another program takes the engine's port just before vLLM does",
        take_port,
        first="engine.0",
        culprit=r"engine\.0",
        cause="port-in-use",
        code=1,
        seconds=60,
        text="ddress already in use",
    ),
    "learner_module_missing": Row(
        "a module that the learner's environment does not have",
        None,
        first="learner.0",
        culprit=r"learner\.0",
        cause="import-error",
        text="flash_attn",
        code=1,
        seconds=120,
        settings={"vars.fault": "module"},
    ),
    "reward_raises": learner_fault("a reward function that raises", "reward-raises", "python-exception", text="boxed"),
    "reward_hangs": Row(
        "a reward function that waits for ever",
        training,
        first="learner.0",
        culprit=r"learner\.0.*share_of_e",
        cause="hang",
        code=124,
        seconds=30,
        settings={"vars.fault": "reward-hangs"},
    ),
    # Of a full disk torch.save says no more than that its file is not as long as it ought to be.
    "checkpoint_disk_full": learner_fault(
        "a checkpoint to a full disk",
        "none",
        "disk-full",
        settings={"vars.save_steps": 3, "vars.checkpoints": "FOLDER/small"},
        within=small_disk,
        text="iostream error|unexpected pos|No space left",
    ),
    # TRL goes on, and so does the run; it ends well, with a model of no use.
    "loss_nan": Row(
        "a learning rate of 1e30, and no weight sync",
        training,
        culprit=r"learner\.0.*(NaN|nan)|(NaN|nan).*learner\.0",
        cause="nan-loss",
        settings={"vars.learning_rate": "1e30", "vars.steps": 8, "vars.fault": "no-sync"},
        fix="learning rate",
        seconds=60,
    ),
    "weights_nan": Row(
        "a learning rate of 1e30: the engine gets weights of NaN",
        at_start,
        first="learner.0",
        culprit=r"learner\.0",
        cause="nan-loss",
        code=1,
        settings={"vars.learning_rate": "1e30", "vars.steps": 8},
        fix="learning rate",
        seconds=120,
    ),
    # An early stop may be meant: the run ends well, and says so.
    "learner_ends_early": Row(
        "the learner exits with 0 in step 3 of 8",
        training,
        culprit=r"learner\.0.*[23] of 8",
        cause="ended-early",
        settings={"vars.fault": "ends-early", "vars.steps": 8},
        seconds=30,
    ),
    "learner_host_memory": learner_fault(
        "the kernel's OOM killer ends the learner, which leaks",
        "leak",
        "host-oom",
        code=137,
        within=small_memory,
        fix="memory",
        settings={"watch.stall": "60s"},
    ),
    "weights_of_other_shapes": learner_fault(
        "weights whose shapes are not the engine's", "other-shapes", "shape-mismatch"
    ),
    "engine_paused": Row(
        "the engine is paused and nobody resumes it: /health is answered, completions are not",
        pause,
        first="engine.0",
        culprit=r"engine\.0.*paused",
        cause="hang",
        code=124,
        seconds=25,
        fix="resume",
    ),
    "sync_engine_never_enters": gloo_row(
        "the engine never enters a weight sync", "engine-never-enters", "engine.0", "hang"
    ),
    "sync_learner_never_enters": gloo_row(
        "the learner never enters a weight sync", "learner-never-enters", "learner.0", "hang"
    ),
    "sync_other_size": gloo_row(
        "the engine expects half of the weights", "other-size", "engine.0", "collective-desync", code=134, seconds=10
    ),
    # Both end within a millisecond, in either order.
    "sync_engine_ends_early": gloo_row(
        "the engine exits with 0 while the learner syncs",
        "ends-early",
        "engine.0",
        "ended-early|peer-process-died",
        code=1,
        seconds=10,
        first=r"(engine|learner)\.0",
    ),
    "ray_healthy": Row(
        "nothing, with Ray",
        lambda run: run.progress("trainer.0", 3, r"step (\d+)"),
        blameless=True,
        settings={"vars.steps": 10},
        **RAY,
    ),
    **dict(ray_rows("ray_worker", "a worker of Ray", RAY_WORKER, r"trainer\.0|ray-head\.0", "ray::WorkerDict")),
    **dict(ray_rows("raylet", "the raylet", RAYLET, r"ray-head\.0", "raylet")),
    **dict(ray_rows("gcs", "the head's gcs_server", GCS, r"ray-head\.0", "gcs_server")),
    "ray_host_memory": Row(
        "Ray's memory monitor ends a worker that leaks",
        lambda run: run.progress("trainer.0", 2, r"step (\d+)"),
        first=r"trainer\.0|learner\.\d",
        culprit=r"WorkerDict",
        cause="ray-host-oom",
        code=1,
        seconds=60,
        fix="memory",
        settings={"vars.fault": "leak", "vars.memory_threshold": "0.4"},
        **RAY,
    ),
}
