"""GRPO with TRL on a CPU. A vLLM server generates; the weights go to it through a folder, since NCCL wants GPUs.

--fault makes it fail in the way that is named, in step --at."""

import argparse
import json
import os
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--other-model", help="of other shapes, for --fault=other-shapes")
parser.add_argument("--engine", required=True, help="http://host:port")
parser.add_argument("--run", required=True, help="the run directory: the weights go through its folder weights")
parser.add_argument("--checkpoints", required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--save-steps", type=int, required=True, help="0: never")
parser.add_argument("--learning-rate", type=float, required=True)
parser.add_argument("--fault", required=True)
parser.add_argument("--at", type=int, default=3)
args = parser.parse_args()
weights = os.path.join(args.run, "weights")

if args.fault == "module":
    import flash_attn  # noqa: F401: it is not there

from datasets import Dataset  # noqa: E402
from transformers import TrainerCallback  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402


def ask(path, body):
    request = urllib.request.Request(
        args.engine + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:  # no timeout, as in most trainers
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path} was answered {error.code}: {error.read().decode()}") from None


def fault(name):
    return args.fault == name and trainer.state.global_step + 1 >= args.at


def sync():
    start = time.perf_counter()
    trainer.model.save_pretrained(weights)
    if fault("other-shapes"):
        shutil.copy(f"{args.other_model}/model.safetensors", weights)
    ask("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": weights}})
    print(f"weight sync took {time.perf_counter() - start:.3f}s", flush=True)


def generate(prompts, trainer):
    if trainer.state.global_step > 0 and args.fault != "no-sync":
        sync()
    ids = [
        trainer.processing_class.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False)
        for prompt in prompts
    ]
    choices = ask(
        "/v1/completions",
        {"model": args.model, "prompt": ids, "max_tokens": 16, "logprobs": 0, "return_token_ids": True},
    )["choices"]
    choices.sort(key=lambda choice: choice["index"])
    return {
        "prompt_ids": ids,
        "completion_ids": [choice["token_ids"] for choice in choices],
        "logprobs": [choice["logprobs"]["token_logprobs"] for choice in choices],
    }


kept = []


def share_of_e(completions, **_):
    if fault("reward-raises"):
        raise ValueError("no \\boxed{} in the completion")
    if fault("reward-hangs"):
        judge = socket.create_server(("127.0.0.1", 0))  # accepts and does not answer
        socket.create_connection(judge.getsockname()).recv(1)
    if fault("leak"):
        kept.append(b"x" * (8 << 30))
    return [completion[0]["content"].count("e") / 16 for completion in completions]


class EndsEarly(TrainerCallback):
    def on_step_end(self, *_, **__):
        if args.fault == "ends-early" and trainer.state.global_step == args.at:
            sys.exit(0)


words = "engine learner weight token reward batch".split()
trainer = GRPOTrainer(
    model=args.model,
    reward_funcs=share_of_e,
    rollout_func=generate,
    callbacks=[EndsEarly()],
    train_dataset=Dataset.from_list(
        [{"prompt": [{"role": "user", "content": f"The {a} and the {b}"}]} for a in words for b in words]
    ),
    args=GRPOConfig(
        output_dir=os.path.join(args.run, args.checkpoints),
        max_steps=args.steps,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=16,
        learning_rate=args.learning_rate,
        lr_scheduler_type="constant",
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="steps" if args.save_steps else "no",
        save_steps=args.save_steps or 500,
        gradient_checkpointing=False,
        model_init_kwargs={"dtype": "float32"},
    ),
)
trainer.train()
