"""A byte-level BPE tokenizer small enough for a model of a few hundred thousand parameters.

Each Chinese character and each digit stands alone, so that copying is a matter of single tokens; words of the system
prompt and of SQL become one token each. The tags of tool calls are plain added tokens, not special ones: special tokens
are removed from generated text before vLLM's tool parser reads it. Used by `training/cold_start.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
VOCABULARY = 2048
PIECE = r"\p{Han}| ?[A-Za-z_]+|[0-9]|\n| ?[^\p{Han}A-Za-z_0-9\n ]+| +"
TEMPLATE = Path(__file__).with_name("tiny_chat_template.jinja")


def common_characters() -> str:
    """Return the 3,755 most common Chinese characters (GB 2312, level 1)."""
    pairs = (bytes([row, column]) for row in range(0xB0, 0xD8) for column in range(0xA1, 0xFF))
    return "".join(pair.decode("gb2312", errors="ignore") for pair in pairs)


def render(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], add_generation_prompt: bool = False
) -> str:
    """Render a conversation with the chat template the way transformers and vLLM do."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(messages=messages, tools=tools, add_generation_prompt=add_generation_prompt)


def train_tokenizer(texts: Iterable[str]) -> Any:
    """Train on `texts` and return a `tokenizers.Tokenizer` of at most `VOCABULARY` entries."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(TAGS),
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    return tokenizer


def wrap(tokenizer: Any) -> Any:
    """Return the `transformers` tokenizer with the chat template and the roles of the special tokens."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE.read_text(encoding="utf-8"),
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )


def name_the_usual_class(folder: Path) -> None:
    """Name the tokenizer class that readers other than transformers 5 know."""
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
