"""Puts the model where engine and learner read it, before either starts: from a folder, from the hub, or made here.

The one that is made is tiny and of random weights, with a tokenizer trained on the text below: no network and no file is needed.
"""
import argparse
import pathlib

import torch
from huggingface_hub import snapshot_download
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TINY = "tiny"
TEXT = """
A launcher starts a learner and an engine, and stops them when one of them fails. The learner trains the weights of a model;
the engine generates text from prompts. After every step the learner sends its weights to the engine over the network.
A reward says how good a completion is. The learner compares the completions of one prompt with each other, and makes those
with a better reward more likely. Every rank of a group has to take part in a collective; where one is missing, the others wait.
Say something about launch and learner. Say something about engine and weight. Say something about node, rank and step.
"""
CHAT = """{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1024, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = CHAT
    return fast


def make_model(tokenizer):
    torch.manual_seed(0)
    config = Qwen2Config(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=1024,
                         vocab_size=len(tokenizer), max_position_embeddings=2048, tie_word_embeddings=False,
                         bos_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    return Qwen2ForCausalLM(config).to(torch.bfloat16)


def find(model):
    """The folder of a model that is on this machine, or else on the hub: then it is downloaded once, into the hub's own cache."""
    folder = pathlib.Path(model).expanduser()
    return folder.resolve() if folder.is_dir() else pathlib.Path(snapshot_download(model))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help=f"a folder, a name on the hub, or {TINY}, which is made")
    parser.add_argument("output", type=pathlib.Path, help="the folder that is made, or a link to the model's")
    options = parser.parse_args()
    if options.output.exists():
        return  # by the attempt before
    if options.model != TINY:
        options.output.symlink_to(find(options.model))
        print(f"{options.output} is {options.output.readlink()}", flush=True)
        return
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    tokenizer.save_pretrained(options.output)
    model.save_pretrained(options.output)
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"made {options.output}: {size:.1f} M parameters, {len(tokenizer)} tokens", flush=True)


if __name__ == "__main__":
    main()
