"""Examples of a supervised training: conversations as tokens, with marks on what is learned."""

import copy
import json
from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from random import Random
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from common.command import Failure
from common.terminal import watched
from episodes.episode import Conversation

NOT_LEARNED = -100
Example = dict[str, list[int]]
Batch = dict[str, torch.Tensor]


class ColdStartError(Failure):
    """A model, its data or its evaluation cannot be used. The message says what to do."""


def encode(conversation: Conversation, tokenizer: Any) -> list[Example]:
    """Return examples of a conversation, with marks on what the model itself writes.

    Turns share an example while each prompt continues the one before. Templates that rewrite
    earlier turns (Qwen3 drops their empty thoughts) get one example a turn. Raises ColdStartError:
    a turn's prompt is not the beginning of the conversation with the turn.
    """
    messages = copy.deepcopy(conversation.messages)
    tools = [*conversation.tools] or None
    for message in messages:
        for call in message.get("tool_calls") or []:
            # Servers hand the arguments to templates in this form
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])

    def render(end: int, opened: bool) -> str:
        if conversation.raw:
            return "".join(message["content"] for message in messages[:end])
        given = {"tools": tools, "add_generation_prompt": opened, "tokenize": False}
        return str(tokenizer.apply_chat_template(messages[:end], **given))

    turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    texts: list[str] = []
    learned_spans: list[list[tuple[int, int]]] = []  # of each text
    for at, learn in zip(turns, conversation.learn, strict=True):
        if not learn:
            continue
        prompt = render(at, opened=True)
        whole = render(at + 1, opened=False).rstrip()
        if not whole.startswith(prompt):
            raise ColdStartError(
                "the chat template renders a conversation differently once the reply is there"
            )
        if texts and prompt.startswith(texts[-1]):  # it goes on from the turn before
            texts[-1] = whole
        else:
            texts.append(whole)
            learned_spans.append([])
        learned_spans[-1].append((len(prompt), len(whole)))
    examples = []
    for text, spans in zip(texts, learned_spans, strict=True):
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        tokens = encoded["input_ids"]
        labels = []
        for token, (left, right) in zip(tokens, encoded["offset_mapping"], strict=True):
            learned = any(start <= left and right <= end for start, end in spans)
            labels.append(token if learned else NOT_LEARNED)
        examples.append({"input_ids": tokens, "labels": labels})
    return examples


def encode_all(conversations: Sequence[Conversation], tokenizer: Any) -> list[Example]:
    examples: list[Example] = []
    for conversation in watched(conversations, "encoding", "conversations"):
        examples += encode(conversation, tokenizer)
    return examples


def batches(
    examples: Sequence[Example], size: int, pad: int, random: Random, alike: bool = False
) -> list[Batch]:
    """Return token ids and labels of groups of `size` examples, (size, longest).

    Padded on the right: attention is causal, so no learned token sees it, and no mask is needed.
    """
    found = []
    for group in groups_of(examples, size, random, alike):
        batch = {}
        for key, fill in {"input_ids": pad, "labels": NOT_LEARNED}.items():
            rows = [torch.tensor(example[key]) for example in group]
            batch[key] = pad_sequence(rows, batch_first=True, padding_value=fill)
        found.append(batch)
    return found


def groups_of(
    examples: Sequence[Example], size: int, random: Random, alike: bool = False
) -> list[Sequence[Example]]:
    """Return groups that hold every example: of `size`, or smaller ones where that does not divide.

    `alike`: examples of similar length, which is faster but gives decisions away: without a query a
    conversation is short.
    """

    def place(example: Example) -> float:
        noise = 4 * random.random()
        return len(example["input_ids"]) + noise if alike else noise

    order = sorted(examples, key=place)
    count = ceil(len(order) / size)
    ends = [number * len(order) // count for number in range(count + 1)]
    return [order[begin:end] for begin, end in pairwise(ends)]
