"""The wrapper of a learner that trains asynchronously: async_grpo.py PYTHON train.py ARGUMENT..., with TRL's AsyncGRPOTrainer.

The trainer downloads the kernel of its attention from the hub; here PyTorch's own attention stands in for it. It accepts only chat templates that
it knows.
"""

import importlib
import itertools
import os
import pathlib
import sys

import torch
import trl
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoTokenizer
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, packing


class Kernel:
    @staticmethod
    def flash_attn_varlen_func(query, key, value, starts_q, starts_k, longest_q, longest_k, softmax_scale, causal, window_size):
        """Sequences behind one another; the last query of each sees all of its keys."""
        parts = []
        for queries, keys in zip(itertools.pairwise(starts_q.tolist()), itertools.pairwise(starts_k.tolist())):
            q, k, v = (x[slice(*part)].transpose(0, 1)[None] for x, part in ((query, queries), (key, keys), (value, keys)))
            seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
            parts.append(scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=softmax_scale, enable_gqa=True)[0].transpose(0, 1))
        return torch.cat(parts)


def config(use_vllm, vllm_mode, vllm_group_port, use_cpu, **more):
    return AsyncGRPOConfig(**more)


def trainer(model, **more):
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = (pathlib.Path(trl.__file__).parent / "chat_templates/qwen2_5.jinja").read_text()
    return AsyncGRPOTrainer(model=model, processing_class=tokenizer, **more)


if __name__ == "__main__":
    script = sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    packing._flash_attn = Kernel
    train = importlib.import_module(os.path.basename(script).removesuffix(".py"))
    train.GRPOConfig, train.GRPOTrainer = config, trainer
    train.main()
