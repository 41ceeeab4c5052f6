"""What goes over a supervisor's line arrives as it was sent, however it is cut, and is whole or not
there.

Keeps of docs/safety.md, "How it is made": a program has nothing to forge a message with.
"""

import socket
import threading
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.inside.frames import frame, receive

MESSAGES = st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), max_size=5)


def sent(data: bytes, cuts: list[int]) -> socket.socket:
    """A line on which `data` arrives in parts, and then its end."""
    ours, theirs = socket.socketpair()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]

    def send() -> None:
        with theirs:
            for start, end in pairwise(places):
                theirs.sendall(data[start:end])

    threading.Thread(target=send).start()
    return ours


@given(MESSAGES, st.lists(st.integers(0), max_size=8))
def test_messages_arrive_as_they_were_sent(messages: list[dict], cuts: list[int]) -> None:
    with sent(b"".join(map(frame, messages)), cuts) as line:
        assert [receive(line) for _ in messages] == messages
        assert receive(line) is None


@given(st.dictionaries(st.text(), st.text(), min_size=1), st.data())
def test_a_message_that_breaks_off_is_none(message: dict, data: st.DataObject) -> None:
    whole = frame(message)
    with sent(whole[: data.draw(st.integers(0, len(whole) - 1))], []) as line:
        assert receive(line) is None
