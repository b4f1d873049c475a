"""The rows of the fault matrix: what is done, and what the truth about it is."""
import signal

from faults import Row

API_SERVER, ENGINE_CORE, WORKER = "", "VLLM::EngineCore", "VLLM::Worker"


def send(number, process, pattern=""):
    """Sends a signal to a process in the tree of a role's, in the middle of the training."""
    def fault(run):
        run.progress()
        run.pid = run.find(process, pattern)
        run.remember()
        run.kill(run.pid, number)
    return fault


def to_nlaunch(number):
    def fault(run):
        run.progress()
        run.remember()
        run.nlaunch.send_signal(number)
    return fault


def killed(what, process, pattern, title, **more):
    return Row(f"kill -9 of {what}", send(signal.SIGKILL, process, pattern), first=process, culprit=rf"{title}.*\bpid {{pid}}\b.*(SIGKILL|killed)",
               cause="process-killed", **{"code": 1, **more})


def terminated(what, process, pattern, title, **more):
    return Row(f"SIGTERM to {what}", send(signal.SIGTERM, process, pattern), first=process, culprit=rf"{title}.*\bpid {{pid}}\b.*(SIGTERM|terminated)",
               cause="process-terminated", **{"code": 1, **more})


def stopped(what, process, pattern, title, **more):
    """The stall is seen after 10 s, and looked at for a few more."""
    return Row(f"SIGSTOP of {what}", send(signal.SIGSTOP, process, pattern), first=process, culprit=rf"{title}.*\bpid {{pid}}\b.*stopped",
               cause="process-stopped", code=124, seconds=25, fix="SIGCONT", **more)


ROWS = {
    "healthy": Row("nothing", lambda run: (run.progress(), run.remember()), blameless=True, settings={"vars.steps": 5}),
    "api_server_killed": killed("vLLM's API server", "engine.0", API_SERVER, "API ?[Ss]erver", code=137),
    "engine_core_killed": killed("VLLM::EngineCore", "engine.0", ENGINE_CORE, "EngineCore"),
    "engine_core_stopped": stopped("VLLM::EngineCore; /health is answered, completions are not", "engine.0", ENGINE_CORE, "EngineCore"),
    "worker_killed": killed("VLLM::Worker", "engine.0", WORKER, "Worker"),
    "worker_stopped": stopped("VLLM::Worker", "engine.0", WORKER, "Worker"),
    "api_server_stopped": stopped("vLLM's API server", "engine.0", API_SERVER, "API ?[Ss]erver"),
    "engine_core_terminated": terminated("VLLM::EngineCore", "engine.0", ENGINE_CORE, "EngineCore"),
    "worker_terminated": terminated("VLLM::Worker", "engine.0", WORKER, "Worker"),
    "api_server_terminated": terminated("vLLM's API server", "engine.0", API_SERVER, "API ?[Ss]erver"),
    "healthy_sigterm": Row("SIGTERM to nlaunch", to_nlaunch(signal.SIGTERM), blameless=True, code=143),
    "healthy_ctrl_c": Row("SIGINT to nlaunch", to_nlaunch(signal.SIGINT), blameless=True, code=130),
    "learner_killed": killed("the learner", "learner.0", "", "learner.0", code=137),
    "learner_stopped": stopped("the learner", "learner.0", "", "learner.0"),
    "learner_terminated": terminated("the learner", "learner.0", "", "learner.0", code=143),
}
