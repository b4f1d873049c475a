"""Writes a tiny Qwen2 of random weights, with a tokenizer that is trained here: make_model.py FOLDER [HIDDEN_SIZE]"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

NOUNS = "engine learner weight token reward batch step node rank port socket prompt answer server worker model".split()
VERBS = "starts stops sends reads keeps loses counts finds waits for answers".split()
TEXT = [
    f"The {a} {verb} the {b}, and then the {b} {verb} every other {a}." for a in NOUNS for verb in VERBS for b in NOUNS
]
TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)

folder, hidden = sys.argv[1], int((sys.argv + [128])[2])
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(
    TEXT,
    trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    ),
)
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", chat_template=TEMPLATE
)
fast.save_pretrained(folder)

torch.manual_seed(0)
Qwen2ForCausalLM(
    Qwen2Config(
        vocab_size=512,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        dtype="bfloat16",
    )
).to(torch.bfloat16).save_pretrained(folder)
