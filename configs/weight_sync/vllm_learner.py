"""Sends weights to vLLM servers by their weight-transfer API, several times, and ends well only if every server generates what
these weights make it generate.

The weights of each sync are those of a model that says one token for ever: all embeddings are equal, no layer adds anything to
them, and one row of the output layer is larger than all others. Which token it is changes with each sync.

With --addrs-file it outlives its servers: when one is gone, it waits until the servers of that file answer, makes the group anew with
them, and sends the weights of that step again.
"""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import socket
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
MOST_ENGINES = 64
TO_MEET = 60  # seconds


class Lost(Exception):
    """A server is gone, or has lost its engine."""


class Engine:
    """A server, whose ranks begin at `offset` in the group."""

    def __init__(self, url, offset, timeout):
        self.url, self.offset, self.timeout = url, offset, timeout
        self.ranks = self.ask("get_world_size")["world_size"]

    def ask(self, path, body=None):
        """The answer to a GET, or with a body to a POST; what the server refuses ends the program with its own words."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.loads(answer.read() or "{}")
        except urllib.error.HTTPError as error:
            words = f"{self.url}/{path}: {error} {error.read().decode(errors='replace')[:500]}"
            raise (Lost(words) if error.code >= 500 else SystemExit(words)) from None
        except (OSError, http.client.HTTPException) as error:
            raise Lost(f"{self.url}/{path}: {error}") from None

    def says(self, prompt):
        answer = self.ask("v1/completions", {"model": "model", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True,
                                             "skip_special_tokens": False})
        return answer["choices"][0]["text"]


def engines_at(urls, timeout):
    engines, offset = [], 1
    for url in urls:
        engines.append(Engine(url, offset, timeout))
        offset += engines[-1].ranks
    return engines


def size_of_group(engines):
    return 1 + sum(engine.ranks for engine in engines)


def engines_of(options):
    """Those that were named; or those of the file, as soon as there are some and all of them answer."""
    if not options.addrs_file:
        engines = engines_at(options.engines.split(","), options.timeout)
        if size_of_group(engines) != options.world_size:
            sys.exit(f"the servers have {size_of_group(engines) - 1} ranks, and the group of {options.world_size} has room for {options.world_size - 1}")
        return engines
    deadline = time.monotonic() + options.timeout
    why = "the file names none"
    while time.monotonic() < deadline:
        urls = [f"http://{address}" for address in options.addrs_file.read_text().split()]
        try:
            engines = engines_at(urls, options.timeout)
            for engine in engines:
                engine.ask("health")  # a server that has lost its engine still answers other questions
            if engines:
                return engines
        except Lost as lost:
            why = lost
        time.sleep(0.2)
    sys.exit(f"no servers within {options.timeout:.0f} s: {why}")


def on_all(pool, engines, path, body_of):
    return [pool.submit(engine.ask, path, body_of(engine)) for engine in engines]


def free_port(host):
    with socket.socket() as one:
        one.bind((host, 0))
        return one.getsockname()[1]


def join(pool, engines, options, port):
    """The group of this process, which is rank 0, and of all servers' ranks."""
    waiting = on_all(pool, engines, "init_weight_transfer_engine", lambda engine: {
        "init_info": {"master_address": options.host, "master_port": port, "rank_offset": engine.offset, "world_size": size_of_group(engines)}})
    concurrent.futures.wait(waiting, timeout=1, return_when=concurrent.futures.FIRST_EXCEPTION)
    for one in waiting:
        if one.done():
            one.result()  # a server that refuses never comes
    try:
        group = StatelessProcessGroup.create(host=options.host, port=port, rank=0, world_size=size_of_group(engines), store_timeout=TO_MEET)
    except (RuntimeError, OSError) as error:
        raise Lost(f"the servers did not come to {options.host}:{port}: {error}") from None
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
        one.result()  # a broadcast to a server that is gone would never end
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
    parser.add_argument("--engines", default="", help="URLs, with commas between")
    parser.add_argument("--addrs-file", type=pathlib.Path, help="in their place: a file with HOST:PORT of each server of now")
    parser.add_argument("--host", required=True, help="where the group meets: this process listens there")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--timeout", type=float, default=120, help="seconds")
    parser.add_argument("--syncs", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0, help="seconds, between two of them")
    options = parser.parse_args()
    torch.cuda.set_device(0)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16).cuda()
    tokens = list(dict.fromkeys(tokenizer(WORDS)["input_ids"]))

    def sync_and_ask(pool, engines, communicator, number):
        """How many servers say something else."""
        token = tokens[number % len(tokens)]
        say_for_ever(model, token)
        sync_once(pool, engines, communicator, model, number)
        expected = tokenizer.decode([token] * TOKENS)
        wrong = 0
        for engine in engines:
            said = engine.says([tokens[0]])
            wrong += said != expected
            print(f"sync {number}: {engine.url} says {said!r}" + ("" if said == expected else f", not {expected!r}"), flush=True)
        return wrong

    wrong, number, group = 0, 1, None
    port = options.port
    with concurrent.futures.ThreadPoolExecutor(MOST_ENGINES) as pool:
        while number <= options.syncs:
            try:
                if group is None:
                    engines = engines_of(options)
                    group = join(pool, engines, options, port)
                    print(f"a group of {size_of_group(engines)} with {', '.join(engine.url for engine in engines)}", flush=True)
                wrong += sync_and_ask(pool, engines, group, number)
            except Lost as lost:
                if not options.addrs_file:
                    sys.exit(str(lost))
                print(f"step {number} is sent again: {lost}", flush=True)
                group = None
                port = free_port(options.host)  # the store of the group before still listens
                continue
            number += 1
            time.sleep(options.pause)
    if wrong:
        sys.exit(f"{wrong} answers show other weights")
    print(f"all checks passed: {options.syncs} syncs to {len(engines)} engines", flush=True)


if __name__ == "__main__":
    main()
