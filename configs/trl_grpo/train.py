"""GRPO with TRL. A vLLM server generates the completions, and has the new weights before it generates again.

The reward is the share of the letter 'e' in a completion: a model of random weights learns that in some dozen steps.
"""
import argparse
import pathlib
import time

import torch
from datasets import Dataset
from safetensors.torch import save_file
from trl import GRPOConfig, GRPOTrainer
from trl.generation.vllm_client import VLLMClient
from trl.generation.vllm_generation import VLLMGeneration

WORDS = ["launch", "learner", "engine", "weight", "node", "rank", "step", "reward", "prompt", "token", "batch", "server"]


def share_of_e(completions, **_):
    texts = [completion[0]["content"] for completion in completions]
    return [text.lower().count("e") / max(len(text), 1) for text in texts]


def prompts():
    pairs = [(a, b) for a in WORDS for b in WORDS if a != b]
    return Dataset.from_list([{"prompt": [{"role": "user", "content": f"Say something about {a} and {b}."}]} for a, b in pairs])


def sync_over_disk(folder):
    """The server reads the weights from a folder. TRL itself sends them over NCCL alone, for which both sides need a GPU."""
    folder.mkdir(parents=True, exist_ok=True)

    def write_and_reload(client, _, named_parameters):
        tensors = {name: parameter.detach().cpu().contiguous() for name, parameter in named_parameters}
        save_file(tensors, folder / "model.safetensors")
        reload = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        client._post(f"{client.base_url}/collective_rpc", json=reload)

    VLLMClient.init_communicator = lambda *_, **__: None
    VLLMClient.update_named_params = write_and_reload


def report_sync_time():
    sync = VLLMGeneration.sync_weights

    def timed(generation):
        start = time.perf_counter()
        sync(generation)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        print(f"weight sync took {time.perf_counter() - start:.3f}s", flush=True)

    VLLMGeneration.sync_weights = timed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder of checkpoints, and of the weights with --sync disk")
    parser.add_argument("--engine", required=True, help="http://HOST:PORT of the vLLM server")
    parser.add_argument("--sync", choices=["nccl", "disk"], required=True, help="how the server gets the weights")
    parser.add_argument("--group-port", type=int, required=True, help="of the weight-sync group, with --sync nccl")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="completions in a step, eight of each prompt")
    parser.add_argument("--completion", type=int, required=True, help="tokens of a completion, at most")
    parser.add_argument("--learning-rate", type=float, required=True)
    options = parser.parse_args()
    if options.sync == "disk":
        sync_over_disk(options.output / "weights")
    report_sync_time()
    gpu = torch.cuda.is_available()
    config = GRPOConfig(
        output_dir=str(options.output),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        num_generations=8,
        max_completion_length=options.completion,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        bf16=gpu,
        use_cpu=not gpu,
        model_init_kwargs={"dtype": "bfloat16"},
        use_vllm=True,
        vllm_mode="server",
        vllm_server_base_url=options.engine,
        vllm_group_port=options.group_port,
    )
    trainer = GRPOTrainer(model=options.model, reward_funcs=share_of_e, args=config, train_dataset=prompts())
    trainer.train()
    rewards = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    if trainer.is_world_process_zero():  # others may log nothing
        print(f"reward from {rewards[0]:.3f} to {rewards[-1]:.3f} in {len(rewards)} steps", flush=True)


if __name__ == "__main__":
    main()
