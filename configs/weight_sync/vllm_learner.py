"""Sends weights to vLLM servers by their weight-transfer API, several times, and ends well only if every server generates what
these weights make it generate.

The weights of each sync are those of a model that says one token for ever: all embeddings are equal, no layer adds anything to
them, and one row of the output layer is larger than all others. Which token it is changes with each sync.
"""
import argparse
import concurrent.futures
import json
import sys
import time
import urllib.error
import urllib.request

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
from vllm.distributed.utils import StatelessProcessGroup

WORDS = " learner engine weight rank step node"
TOKENS = 8  # to generate


class Engine:
    """A server, whose ranks begin at `offset` in the group."""

    def __init__(self, url, offset, timeout):
        self.url, self.offset, self.timeout = url, offset, timeout
        self.ranks = self.ask("get_world_size")["world_size"]

    def ask(self, path, body=None):
        """The answer to a GET, or with a body to a POST; a failure ends the program with the server's own words."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.loads(answer.read() or "{}")
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{self.url}/{path}: {error} {error.read().decode(errors='replace')[:500]}") from None

    def says(self, prompt):
        answer = self.ask("v1/completions", {"model": "model", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True,
                                             "skip_special_tokens": False})
        return answer["choices"][0]["text"]


def engines_of(options):
    engines, offset = [], 1
    for url in options.engines.split(","):
        engines.append(Engine(url, offset, options.timeout))
        offset += engines[-1].ranks
    if offset != options.world_size:
        sys.exit(f"the servers have {offset - 1} ranks, and the group of {options.world_size} has room for {options.world_size - 1}")
    return engines


def on_all(pool, engines, path, body_of):
    return [pool.submit(engine.ask, path, body_of(engine)) for engine in engines]


def join(pool, engines, options):
    """The group of this process, which is rank 0, and of all servers' ranks."""
    waiting = on_all(pool, engines, "init_weight_transfer_engine", lambda engine: {
        "init_info": {"master_address": options.host, "master_port": options.port, "rank_offset": engine.offset, "world_size": options.world_size}})
    group = StatelessProcessGroup.create(host=options.host, port=options.port, rank=0, world_size=options.world_size)
    communicator = PyNcclCommunicator(group, device=torch.cuda.current_device())
    for one in waiting:
        one.result()
    return communicator


def say_for_ever(model, token):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_tokens" in name or "norm" in name:
                weight.fill_(1)
            elif name.endswith(("o_proj.weight", "down_proj.weight")) or "lm_head" in name:
                weight.zero_()
            else:
                weight.normal_()
        model.get_output_embeddings().weight[token] = 2


def sync_once(pool, engines, communicator, model, number):
    weights = [(name, weight.detach()) for name, weight in model.named_parameters()]
    update = {"names": [name for name, _ in weights], "dtype_names": [str(weight.dtype).removeprefix("torch.") for _, weight in weights],
              "shapes": [list(weight.shape) for _, weight in weights]}
    for path in ("pause", "start_weight_update"):
        for one in on_all(pool, engines, path, lambda _: {}):
            one.result()
    torch.cuda.synchronize()
    start = time.monotonic()
    waiting = on_all(pool, engines, "update_weights", lambda _: {"update_info": update})
    for _, weight in weights:
        communicator.broadcast(weight, src=0, stream=torch.cuda.current_stream())
    for one in waiting:
        one.result()
    torch.cuda.synchronize()
    took = time.monotonic() - start
    for path in ("finish_weight_update", "resume"):
        for one in on_all(pool, engines, path, lambda _: {}):
            one.result()
    size = sum(weight.numel() * weight.element_size() for _, weight in weights)
    print(f"step {number} weight sync took {took:.3f}s ({len(weights)} tensors, {size / 2**20:.1f} MiB, {size / took / 1e9:.2f} GB/s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a folder")
    parser.add_argument("--engines", required=True, help="URLs, with commas between")
    parser.add_argument("--host", required=True, help="where the group meets: this process listens there")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--timeout", type=float, default=120, help="seconds")
    parser.add_argument("--syncs", type=int, default=3)
    options = parser.parse_args()
    torch.cuda.set_device(0)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16).cuda()
    engines = engines_of(options)
    tokens = list(dict.fromkeys(tokenizer(WORDS)["input_ids"]))
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(len(engines)) as pool:
        communicator = join(pool, engines, options)
        for number in range(1, options.syncs + 1):
            token = tokens[number % len(tokens)]
            say_for_ever(model, token)
            sync_once(pool, engines, communicator, model, number)
            expected = tokenizer.decode([token] * TOKENS)
            for engine in engines:
                said = engine.says([tokens[0]])
                wrong += said != expected
                print(f"sync {number}: {engine.url} says {said!r}" + ("" if said == expected else f", not {expected!r}"), flush=True)
    if wrong:
        sys.exit(f"{wrong} of {options.syncs * len(engines)} answers show other weights")
    print(f"all checks passed: {options.syncs} syncs to {len(engines)} engines", flush=True)


if __name__ == "__main__":
    main()
