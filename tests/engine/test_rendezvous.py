"""torch's processes meet on the address they were given, and on no other of this machine."""

import json
import socket

import psutil
import pytest

from episodes.agent import bundled_model
from sql_agent.agent import AGENT
from tests.programs import python
from tests.runs import free_port, listens
from training.serve import serve

pytestmark = pytest.mark.engine

# A group of one, as verl and vLLM make theirs; then the addresses this process listens on.
GROUP = """
import json, os, sys
import psutil
import torch
{confined}
address, port = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"tcp://{{address}}:{{port}}", rank=0, world_size=1)
torch.distributed.barrier()
open_ones = psutil.Process().net_connections()
listens = [found.laddr.ip for found in open_ones if found.status == "LISTEN"]
interfaces = {{name: os.environ.get(f"{{name}}_SOCKET_IFNAME") for name in ("GLOO", "NCCL")}}
print(json.dumps([listens, interfaces]))
torch.distributed.destroy_process_group()
"""


def group_of(address: str, confined: bool) -> tuple[set[str], dict[str, str]]:
    """Return what a group's first process listens on, and the interfaces gloo and NCCL are told."""
    program = GROUP.format(confined="import training.engine.rendezvous" if confined else "")
    ended = python("-c", program, address, free_port(), check=True)
    listens, interfaces = json.loads(ended.stdout)
    return set(listens), interfaces


def test_it_listens_where_it_was_told():
    listens, interfaces = group_of("127.0.0.1", confined=True)
    assert listens == {"127.0.0.1"}
    assert interfaces == {"GLOO": "lo", "NCCL": "=lo"}
    everywhere, _ = group_of("127.0.0.1", confined=False)
    assert "::" in everywhere, "torch does so itself now: training/engine/rendezvous.py can go"


def test_a_node_s_own_address():
    own = []
    for cards in psutil.net_if_addrs().values():
        own += [card.address for card in cards if card.family == socket.AF_INET]
    others = [address for address in own if not address.startswith("127.")]
    if not others:
        pytest.skip("this machine has the loopback interface only")
    assert group_of(others[0], confined=True)[0] == {others[0]}


@pytest.mark.nightly
def test_a_model_served_outside_training(tmp_path):
    with serve(bundled_model(AGENT), tmp_path / "log") as server:
        main = psutil.Process(server.process.pid)
        found = map(listens, (main, *main.children(recursive=True)))
        assert set().union(*found) == {"127.0.0.1"}
