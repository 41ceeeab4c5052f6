"""A byte-level BPE tokenizer small enough for a model of a few hundred thousand parameters.

Each Chinese character and each digit stands alone, so that copying is a matter of single tokens.
Tags of tool calls are plain added tokens: special ones are removed from generated text before
vLLM's tool parser reads it.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

from episodes.agent import Lessons
from episodes.episode import Conversation

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
# Chat marks and tags are tokens of their own. The tokenizer must not learn to spell them.
MARKS = re.compile("|".join(map(re.escape, SPECIAL + TAGS)))
PIECE = r"\p{Han}| ?[A-Za-z_]+|[0-9]|\n| ?[^\p{Han}A-Za-z_0-9\n ]+| +"
# A name gets the same tokens behind a space as in quotes: another first token would be miscopied
PIECE_APART = PIECE.replace(" ?", "")
TEMPLATE = Path(__file__).with_name("tiny_chat_template.jinja")
TEXTS = 3000  # of each kind


def render(one: Conversation) -> str:
    """Render a conversation as transformers and vLLM do. A raw one needs no template."""
    if one.raw:
        return "".join(message["content"] for message in one.messages)
    template = TEMPLATE.read_text(encoding="utf-8")
    tools = [*one.tools]
    (rendered,), _ = render_jinja_template([one.messages], tools=tools, chat_template=template)
    return str(rendered)


def make_tokenizer(
    conversations: Sequence[Conversation], lessons: Lessons, context: int, random: Random
) -> Any:
    """Return a `transformers` tokenizer for an agent's lessons, with the chat template.

    It learns from conversations as they are rendered, and from random texts of the lessons'
    characters. context: in tokens.
    """
    texts = [MARKS.sub("\n", render(one)) for one in conversations[:TEXTS]]
    if lessons.characters:
        texts += ["".join(random.choices(lessons.characters, k=30)) for _ in range(TEXTS)]
    tokenizer = Tokenizer(models.BPE())
    piece = Regex(PIECE_APART if lessons.apart else PIECE)
    pieces = pre_tokenizers.Split(piece, behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    size = lessons.vocabulary - len(TAGS)
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE.read_text(encoding="utf-8"),
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
