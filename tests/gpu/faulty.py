"""The wrapper of a learner that fails in step 5: faulty.py FAULT[:RANK] PYTHON train.py ARGUMENT...; only that rank, if there are several."""

import importlib
import os
import shutil
import sys
import threading

import torch

(FAULT, _, BAD), SCRIPT = sys.argv[1].partition(":"), sys.argv[3]
sys.argv = sys.argv[3:]
sys.path.insert(0, os.path.dirname(os.path.abspath(SCRIPT)))
train = importlib.import_module(os.path.basename(SCRIPT).removesuffix(".py"))
reward, calls, kept = train.share_of_e, 0, []


def share_of_e(completions, **more):
    global calls
    calls += 1
    if calls >= 5 and BAD in ("", os.environ.get("RANK")):
        if FAULT == "reward-raises":
            raise ValueError("no \\boxed{} in the completion")
        if FAULT == "reward-hangs":
            threading.Event().wait()
        if FAULT == "ends-early":
            sys.exit(0)
        while FAULT == "leak":
            kept.append(torch.empty(8 << 30, dtype=torch.uint8, device="cuda"))
    return reward(completions, **more)


def wider(model):
    """A model with the same tokenizer and twice the width. (vLLM cuts an MLP that is too wide to its own shape, without a word.)"""
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = f"{model}-wider"
    shutil.copytree(model, folder)
    config = AutoConfig.from_pretrained(model)
    config.hidden_size *= 2
    AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


train.share_of_e = share_of_e
if FAULT == "other-shapes":
    at = next(index for index, word in enumerate(sys.argv) if word.startswith("--model="))
    sys.argv[at] = "--model=" + wider(sys.argv[at].removeprefix("--model="))
train.main()
