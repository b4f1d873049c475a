"""The rows of scripts/gpu-frameworks.sh: the TRL recipe on two GPUs, also with two ranks and two workers, and what is done to it.

They are judged as the fault matrix is. Where there are too few GPUs, engine and learner share them, without a preflight.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

GPU = pathlib.Path(__file__).resolve().parent
SOURCE = GPU.parents[1]
sys.path.insert(0, str(SOURCE / "tests/frameworks"))
import fault_rows  # noqa: E402
import faults  # noqa: E402
from faults import Row  # noqa: E402

CPU = bool(os.environ.get("FRAMEWORKS_CPU"))
GPUS = int(os.environ.get("FRAMEWORKS_GPUS", "0"))
ONE_GPU = GPUS == 1


def shared(name):
    """Whether engine and learner have to share the GPUs."""
    return 0 < GPUS < (4 if name in FOUR_GPUS else 2)


VENV = pathlib.Path(os.environ.get("FRAMEWORKS_VENV", "venv"))
CACHE = pathlib.Path.home() / ".cache"  # what vLLM compiles serves the next row
SHARE = 4.0  # seconds that nlaunch itself may take of the recipe's time
STEPS = 10 if CPU else 40
# A row of several at once takes a little of a GPU, and does not measure how much is free: others free theirs meanwhile.
SMALL = "" if CPU else "--gpu-memory-utilization=0.2 --kv-cache-memory-bytes=1073741824"
WHOLE_GPU = {
    "vars.steps": 1000,
    "watch.start": "5m",
    "watch.stall": "10s",
    "watch.on_stall": "abort",
    "roles.engine.stop.grace": "10s",
    "roles.learner.stop.grace": "10s",
}


def engine(script):
    """The engine's command with other arguments, as a shell puts them together from its own."""
    return {**WHOLE_GPU, "roles.engine.wrapper": f"[sh, -c, '{script}', sh]"}


FAULTED = engine(f'exec "$@" {SMALL}')


def signalled(name, seconds=0):
    """A row of the matrix on CPUs; `seconds` where it takes longer here."""
    row = dataclasses.replace(fault_rows.ROWS[name], settings=FAULTED)
    return dataclasses.replace(row, seconds=seconds or row.seconds)


STOPPED = 35  # 10 s without progress, and 15 s for NCCL's RAS, which waits for a process that is stopped
IN_A_SYNC = 20  # an engine whose peer is gone in a weight sync takes the 10 s that it has to end


def learner(fault):
    return {**FAULTED, "roles.learner.wrapper": f"[{VENV}/bin/python, {GPU}/faulty.py, {fault}]"}


def at_start(what, cause, **more):
    return Row(what, fault_rows.at_start, **{"first": "engine.0", "culprit": r"engine\.0", "cause": cause, "code": 1, "seconds": 240, **more})


def in_training(what, faulty, cause, **more):
    usual = {"fault": fault_rows.training, "first": "learner.0", "culprit": r"learner\.0", "code": 1, "seconds": 60}
    return Row(what, cause=cause, settings=learner(faulty), **{**usual, **more})


SLOW_STALL = "40s"  # four processes on two cores take long for a step
# For four GPUs: a learner of two ranks, and a server of two workers. The ranks are nlaunch's, or those of a launcher that is the learner's process.
RANKS = {"roles.learner.per_node": 2}
TENSOR_PARALLEL = {"roles.engine.gpus": 2}
DATA_PARALLEL = {**engine(f'exec "$@" {SMALL} --tensor-parallel-size=1 --data-parallel-size=2'), "roles.engine.gpus": 2}


def launched(*words):
    """A launcher starts the ranks, with ports of its own."""
    return {"roles.learner.gpus": 2, "roles.learner.rendezvous": "none", "roles.learner.wrapper": f"[{', '.join(map(str, words))}]"}


FSDP2 = next(VENV.glob("lib/python*/site-packages/trl/accelerate_configs/fsdp2.yaml"), "fsdp2.yaml")  # as TRL's documentation has it
TORCHRUN = launched(VENV / "bin/python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python")
ACCELERATE_FSDP = launched(VENV / "bin/python", "-m", "accelerate.commands.launch", f"--config_file={FSDP2}", "--num_processes=2",
                           "--main_process_port=0", "--no_python")
# This trainer requests the model by its path, and its worker imports everything once more.
ASYNCHRONOUS = {**engine(f'exec "$@" {SMALL} --tensor-parallel-size=1 --data-parallel-size=2 --served-model-name "$3"'), **RANKS, "roles.engine.gpus": 2,
                "roles.learner.wrapper": f"[{VENV}/bin/python, {GPU}/async_grpo.py]", "watch.stall": "60s"}
RANK = r"\S*python\S* \S*(train|faulty|async_grpo)\.py .*"
ROLLOUT_WORKER = r".*multiprocessing.spawn.*spawn_main"


def on_four(row, *settings, **more):
    """A row in which both sides have two GPUs, or on a CPU two processes that share the cores."""
    changed = {**FAULTED, **row.settings, **{key: value for some in settings for key, value in some.items()}}
    if CPU:
        changed["roles.engine.env.VLLM_CPU_OMP_THREADS_BIND"] = "0|1"
        if changed["watch.stall"] == WHOLE_GPU["watch.stall"]:
            changed["watch.stall"] = SLOW_STALL
        more["seconds"] = more.get("seconds", row.seconds) + 30
    return dataclasses.replace(row, settings=changed, **more)


def four_gpus():
    nothing = Row("", blameless=True, settings={"vars.steps": STEPS})
    for name, what, settings in (
        ("ddp_tensor_parallel", "two ranks of nlaunch's, DDP; a server that is tensor parallel over two GPUs", {**RANKS, **TENSOR_PARALLEL}),
        ("torchrun_tensor_parallel", "two ranks of torchrun's, DDP; the same server", {**TORCHRUN, **TENSOR_PARALLEL}),
        ("fsdp_data_parallel", "two ranks of `accelerate launch`, FSDP2; a server with --data-parallel-size 2", {**ACCELERATE_FSDP, **DATA_PARALLEL}),
        ("asynchronous", "TRL's AsyncGRPOTrainer with two ranks of nlaunch's; a server with --data-parallel-size 2", ASYNCHRONOUS),
    ):
        patient = {"vars.steps": STEPS, "watch.start": "20m", "watch.stall": "10m"}  # as the recipe has it
        yield name, on_four(dataclasses.replace(nothing, what=f"nothing: {what}"), settings, patient)
    rank, worker, core = "the learner's second rank", "VLLM::Worker_TP1", "VLLM::EngineCore_DP1"
    kill, stop, end = fault_rows.killed, fault_rows.stopped, fault_rows.terminated
    both = {**RANKS, **TENSOR_PARALLEL}
    yield "rank_killed", on_four(kill(rank, "learner.1", "", "learner.1", code=137), both, seconds=IN_A_SYNC)
    yield "rank_terminated", on_four(end(rank, "learner.1", "", "learner.1", code=143), both, seconds=IN_A_SYNC)
    yield "rank_stopped", on_four(stop(rank, "learner.1", "", "learner.1"), both, seconds=STOPPED)
    yield "rank_raises", on_four(ROWS["reward_raises"], learner("reward-raises:1"), both, what="a reward function that raises on the second rank",
                                 first="learner.1", culprit=r"learner\.1")
    yield "rank_hangs", on_four(ROWS["reward_hangs"], learner("reward-hangs:1"), both, what="a reward function that waits for ever on the second rank",
                                first="learner.1|", culprit=r"learner\.1", seconds=STOPPED)
    yield "tp_worker_killed", on_four(kill(worker, "engine.0", worker, "Worker", first=r"engine\.0|learner\.[01]"), both)
    yield "tp_worker_stopped", on_four(stop(worker, "engine.0", worker, "Worker"), both, seconds=STOPPED)
    split = {**ACCELERATE_FSDP, **DATA_PARALLEL}
    yield "dp_core_killed", on_four(kill(core, "engine.0", core, "EngineCore", first=r"engine\.0|learner\.0"), split, seconds=IN_A_SYNC)
    yield "dp_core_stopped", on_four(stop(core, "engine.0", core, "EngineCore"), split, seconds=STOPPED)
    yield "fsdp_rank_killed", on_four(kill("a rank of `accelerate launch`", "learner.0", RANK, "train.py"), split, seconds=40)
    yield "fsdp_rank_stopped", on_four(stop("a rank of `accelerate launch`", "learner.0", RANK, "train.py"), split, seconds=STOPPED)
    yield "torchrun_rank_killed", on_four(kill("a rank of torchrun", "learner.0", RANK, "train.py"), {**TORCHRUN, **TENSOR_PARALLEL}, seconds=40)
    yield "async_rank_stopped", on_four(stop(rank, "learner.1", "", "learner.1"), ASYNCHRONOUS, seconds=STOPPED + 50)
    yield "async_rollout_killed", on_four(kill("the rollout worker of AsyncGRPOTrainer", "learner.0", ROLLOUT_WORKER, "learner.0", code=(1, 124)), ASYNCHRONOUS, seconds=STOPPED + 50)
    unserved = {**ASYNCHRONOUS, "roles.engine.wrapper": DATA_PARALLEL["roles.engine.wrapper"]}
    yield "async_model_unserved", on_four(Row("the server serves the model by another name than AsyncGRPOTrainer requests", fault_rows.at_start, first=".*",
                                              culprit="engine.0|learner.0", cause="model-not-served", code=124, seconds=300, fix="served-model-name"), unserved)


def two_engines():
    """A learner and two vLLM servers, of which one is tensor parallel over two GPUs (two_engines.yaml)."""
    wrapper = FAULTED["roles.engine.wrapper"]
    sampler = {f"roles.{role}.env.VLLM_USE_FLASHINFER_SAMPLER": 0 for role in ("engine", "wide")}  # the bundle has no FlashInfer
    settings = {**sampler, "vars.syncs": 2000, "vars.timeout": 60, "watch.start": "5m", "watch.stall": "20s", "watch.on_stall": "abort",
                "roles.engine.wrapper": wrapper, "roles.wide.wrapper": wrapper,
                "roles.engine.stop.grace": "10s", "roles.wide.stop.grace": "10s", "roles.learner.stop.grace": "10s"}

    def send(number, process, pattern):
        def fault(run):
            run.progress(pattern=r"^step (\d+) weight sync took", step=5)
            run.pid = run.find(process, pattern)
            run.kill(run.pid, number)

        return fault

    kill, stop = signal.SIGKILL, signal.SIGSTOP
    worker, core = "VLLM::Worker_TP1", "VLLM::EngineCore"
    yield "two_engines", Row("two engines on one and two GPUs get the weights over NCCL", blameless=True, settings={**settings, "vars.syncs": 20})
    for name, row, number, process, pattern in (
        ("two_worker_killed", fault_rows.killed(f"{worker} of the second of two engines", "wide.0", worker, "Worker",
                                                first=r"wide\.0|learner\.0"), kill, "wide.0", worker),
        ("two_worker_stopped", fault_rows.stopped(f"{worker} of the second of two engines", "wide.0", worker, "Worker"), stop, "wide.0", worker),
        ("two_core_killed", fault_rows.killed(f"{core} of the first of two engines", "engine.0", core, "EngineCore",
                                              code=(1, 124)), kill, "engine.0", core),
        ("two_core_stopped", fault_rows.stopped(f"{core} of the first of two engines", "engine.0", core, "EngineCore"), stop, "engine.0", core),
    ):
        yield name, dataclasses.replace(row, fault=send(number, process, pattern), settings=settings, seconds=50)


@contextlib.contextmanager
def full_gpus(run):
    """Another process holds all but 200 MiB of both GPUs."""
    fill = [str(VENV / "bin/python"), str(GPU / "fill_gpu.py")]
    yield ["env", "CUDA_VISIBLE_DEVICES=0", *fill, "0", "env", "CUDA_VISIBLE_DEVICES=0,0"] if ONE_GPU else [*fill, "0", *fill, "1"]


@contextlib.contextmanager
def broken_compile_cache(run):
    """What torch.compile has kept of the rows before is cut off, as on a disk that was full."""
    shutil.copytree(CACHE / "vllm", run.folder / "cache/vllm")
    run.env["XDG_CACHE_HOME"] = str(run.folder / "cache")
    files = [path for path in (run.folder / "cache").rglob("torch_compile_cache/**/*") if path.is_file()]
    if not files:
        raise RuntimeError("nothing has been compiled yet")
    for path in files:
        os.truncate(path, path.stat().st_size // 2)
    yield []


ROWS = {
    "recipe": Row("nothing: the recipe as it is, with the preflight", blameless=True, settings={"vars.steps": STEPS}),
    "engine_core_killed": signalled("engine_core_killed"),
    "engine_core_stopped": signalled("engine_core_stopped", STOPPED),
    "nccl_versions": at_start(
        "the learner preloads another version of NCCL than the engine's, and there is no preflight",
        "nccl-version-mismatch",
        first="engine.0|learner.0|",
        culprit=r"(learner\.0|trainer|rank 0).*\d+\.\d+\.\d+",
        code=(1, 69, 124),
        settings={**FAULTED, "watch.start": "90s", "roles.learner.preload": "[nccl-system]"},
    ),
    "learner_cuda_oom": in_training("the learner's GPU is full in step 5", "leak", "cuda-oom", fix="smaller batch"),
    "model_path_wrong": at_start(
        "the engine's model does not exist",
        "model-not-found",
        settings=engine(f'shift 3; exec vllm serve /no/such/model "$@" {SMALL}'),
        text="/no/such/model",
    ),
    "engine_gpu_full": at_start(
        "another process has filled the GPUs before the engine starts",
        "cuda-oom|vllm-enginecore-start-failure",
        settings=WHOLE_GPU,
        within=full_gpus,
        fix="memory|nvidia-smi",
    ),
    "kv_cache_too_small": at_start(
        "64 KiB are left for the KV cache",
        "kv-cache-too-small",
        settings=engine('exec "$@" --gpu-memory-utilization=0.2 --kv-cache-memory-bytes=65536'),
        fix="gpu[-_]memory[-_]utilization",
    ),
    "argument_unknown": at_start(
        "an argument that vLLM does not know",
        "wrong-arguments",
        code=2,
        settings=engine('exec "$@" --no-such-option=1'),
        text="no-such-option",
    ),
    "weights_of_other_shapes": in_training("the engine serves another model than the learner trains", "other-shapes", "shape-mismatch",
                                           fault=fault_rows.at_start, seconds=240, first="learner.0|engine.0",
                                           culprit=r"learner\.0|engine\.0"),
    "learner_killed": signalled("learner_killed", IN_A_SYNC),
    "api_server_killed": signalled("api_server_killed"),
    "reward_raises": in_training("a reward function that raises", "reward-raises", "python-exception", text="boxed"),
    "reward_hangs": in_training("a reward function that waits for ever", "reward-hangs", "hang", first="learner.0|", code=124),
    "learner_ends_early": in_training("the learner exits with 0 in step 5 of 1000", "ends-early", "ended-early", first="", code=0,
                                      culprit=r"learner\.0.*\d+ of 1000"),
    "api_server_stopped": signalled("api_server_stopped", STOPPED),
    "learner_stopped": signalled("learner_stopped", STOPPED),
    "engine_core_terminated": signalled("engine_core_terminated"),
    "api_server_terminated": signalled("api_server_terminated"),
    "learner_terminated": signalled("learner_terminated", IN_A_SYNC),
    "compile_cache_broken": Row("what torch.compile has kept is damaged", within=broken_compile_cache, blameless=True,
                                settings={**FAULTED, "vars.steps": 5}),
}
TWO_ENGINES = dict(two_engines())
FOUR_GPUS = {**dict(four_gpus()), **TWO_ENGINES}
ROWS.update(FOUR_GPUS)
RECIPES = {name for name, row in ROWS.items() if row.what.startswith("nothing: ")}
ALONE = {"recipe", "ddp_tensor_parallel", "learner_cuda_oom", "engine_gpu_full"}  # of those at once: they want their GPUs to themselves
NEED_GPUS = {"nccl_versions", "learner_cuda_oom", "engine_gpu_full", "kv_cache_too_small", "weights_of_other_shapes", "compile_cache_broken",
             *(name for name in ROWS if name.startswith("async")), *TWO_ENGINES}


def gpu_processes():
    """What each process holds of the GPUs, by pid."""
    if CPU:
        return {}
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(pid): size for pid, size in (line.split(", ") for line in lines)}


def sockets():
    return {path for path in pathlib.Path("/tmp").iterdir() if stat.S_ISSOCK(path.lstat().st_mode)}


class Run(faults.Run):
    """The recipe on this machine's GPUs."""

    def finish(self):
        said_nothing = super().finish()
        self.left += [f"GPU memory: pid {pid}, {size}" for pid, size in sorted(gpu_processes().items()) if pid in self.tree]
        return said_nothing

    def command(self, runs="runs", **more):
        where = ["--with", "cpu", "--site", "local"] if CPU else ["--site", str(GPU / "h200.yaml"), "--site-dir", str(SOURCE / "site-profiles")]
        checks = [] if self.folder.name in ("recipe", "ddp_tensor_parallel") and not shared(self.folder.name) else ["--no-preflight", "--no-lint", "--share"]
        two = self.folder.name in TWO_ENGINES
        # NCCL refuses a GPU to two processes of one host; by NCCL_HOSTID each role is a host of its own. The preflight refuses it, too.
        roles = ["learner", "engine", *(["wide"] if two else [])]
        apart = {f"roles.{role}.env.NCCL_HOSTID": role for role in roles} if shared(self.folder.name) else {}
        settings = [word for key, value in {**apart, **self.settings, **more}.items() for word in ("--set", f"{key}={value}")]
        experiment = GPU / "two_engines.yaml" if two else SOURCE / "configs/trl-grpo.yaml"
        return [str(faults.NLAUNCH), "run", str(experiment), *where, *checks, "--runs-dir", str(self.folder / runs), "--color", "never", *settings]


def spans(run):
    """Seconds from the start of each process until it was ready, or else had ended; of the learner until its end."""
    started = {event["process"]: event["mono_ms"] for event in run.events("process-started")}
    until = {event["process"]: event["mono_ms"] for name in ("process-ended", "process-ready") for event in run.events(name)
             if name == "process-ended" or event["process"].startswith("engine")}
    return {process: (until[process] - start) / 1000 for process, start in started.items() if process in until}


def judge_recipe(run, result):
    """The reward has risen, and nlaunch took little of the time: all of it but the three roles', which follow one another."""
    rewards = [float(value) for value in re.findall(r"'reward': '?([0-9.e+-]+)", run.log("learner.0"))]
    if len(rewards) < STEPS:
        result["wrong"].append(f"{len(rewards)} steps have a reward, not {STEPS}")
    first, last = (sum(some) / max(len(some), 1) for some in (rewards[:5], rewards[-5:]))
    if not first < last:
        result["wrong"].append(f"the reward went from {first:.3f} to {last:.3f}")
    processes = spans(run)
    roles = {process.partition(".")[0]: 0.0 for process in processes}
    for process, seconds in processes.items():
        role = process.partition(".")[0]
        roles[role] = max(roles[role], seconds)
    own = run.ended - sum(roles.values())
    if own > SHARE:
        result["wrong"].append(f"nlaunch itself took {own:.1f} s, more than {SHARE}")
    times = ", ".join(f"{role} {seconds:.1f} s" for role, seconds in roles.items())
    result["said"]["sentence"] += (f"; reward {first:.3f} to {last:.3f} (means of 5 steps); {run.ended:.1f} s in all: {times}, "
                                   f"nlaunch itself {own:.1f} s")


def do(name, folder):
    """Runs a row; what came of it, with what was left behind."""
    row = ROWS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {**os.environ, "VIRTUAL_ENV": str(VENV), "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "inductor"), "HF_HUB_OFFLINE": "1",
           "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if shared(name):
        env["CUDA_VISIBLE_DEVICES"] = ",".join(2 * [str(gpu) for gpu in range(GPUS)])
    run = Run(row, folder, env, dict(row.settings))
    result = faults.carry_out(run)
    if name in RECIPES:
        judge_recipe(run, result)
    shutil.rmtree(run.path / "model", ignore_errors=True)
    shutil.rmtree(run.path / "model-wider", ignore_errors=True)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    faults.keep(name, run, result)
    return result


def table(results):
    lines = ["| row | right? | said | after | exit code | left behind |", "|---|---|---|---|---|---|"]
    for name, result in results.items():
        if isinstance(result, str):
            lines.append(f"| {name} | {result} | | | | |")
            continue
        said = result["said"]
        right = "**wrong**: " + "; ".join(result["wrong"]) if result["wrong"] else "right"
        after = "-" if said["seconds"] is None else f"{said['seconds']} s"
        words = f"{said['first'] or 'nobody'} first, [{said['cause'] or 'no cause'}]: {said['sentence']}"
        cells = (name, right, words, after, str(said["code"]), ", ".join(result["left"]) or "nothing")
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


class Rows:
    """Carries out rows for as long as there is time, and writes the table after each."""

    def __init__(self, options, results, folder):
        self.table, self.results, self.folder = options.table, results, folder
        self.deadline, self.longest = time.monotonic() + 60 * options.minutes, 120
        self.lock = threading.Lock()

    def do(self, name):
        if (CPU and name in NEED_GPUS) or (ONE_GPU and name in FOUR_GPUS):
            self.results[name] = f"not run: needs {'two ' if ONE_GPU else ''}GPUs"
            return
        start = time.monotonic()
        if start + self.longest > self.deadline:
            return
        faults.PATIENCE = min(300, self.deadline - start - 20)
        result = do(name, self.folder / name)
        with self.lock:
            self.results[name] = result
            self.longest = max(self.longest, 1.2 * result["whole"]) if result["whole"] < 200 else self.longest
            print(f"{'FAIL' if result['wrong'] else 'PASS'} {name} ({result['whole']} s)", *result["wrong"], sep="\n     ", flush=True)
            if self.table:
                self.table.write_text(table(self.results))


def main():
    parser = argparse.ArgumentParser(prog="gpu-frameworks.sh", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="those; else all")
    parser.add_argument("--minutes", type=float, default=120, help="rows that would not fit are not run")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many rows at once, which share the GPUs")
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE", help="the table, written after every row")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="what each row's run wrote")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.rows) - ROWS.keys():
        parser.error(f"no such rows: {', '.join(sorted(unknown))}")
    if options.list:
        print("\n".join(f"{name:26} {row.what}" for name, row in ROWS.items()))
        return
    names = options.rows or list(ROWS)
    results = dict.fromkeys(names, "not run")
    before = sockets()
    with tempfile.TemporaryDirectory(prefix="nlaunch-frameworks-") as temporary:
        rows = Rows(options, results, (options.keep or pathlib.Path(temporary)).resolve())
        for name in names:
            if name in ALONE:
                rows.do(name)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(rows.do, [name for name in names if name not in ALONE]))
    left = sorted(map(str, sockets() - before))
    print("\n" + table(results))
    done = [result for result in results.values() if not isinstance(result, str)]
    wrong = sum(bool(result["wrong"]) for result in done)
    if left:
        print("sockets that were left behind:", *left)
    print(f"{len(done) - wrong} passed, {wrong} failed, {len(results) - len(done)} skipped")
    sys.exit(wrong > 0 or bool(left))


if __name__ == "__main__":
    main()
