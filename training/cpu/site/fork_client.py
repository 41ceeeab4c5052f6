"""Ask the fork server for a Ray worker in place of a new Python, with the standard library only.

    python -I -S fork_client.py SOCKET ARGUMENTS ...     # as `python ARGUMENTS ...`

If no server answers, this becomes the Python that Ray would have started.
"""

import json
import os
import socket
import sys


def main(address, arguments):
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(address)
            request = {
                "arguments": arguments,
                "environment": dict(os.environ),
                "folder": os.getcwd(),
            }
            socket.send_fds(server, [b"+"], [0, 1, 2])
            server.sendall(json.dumps(request).encode())
            server.shutdown(socket.SHUT_WR)
            if server.recv(1):
                return
        except OSError:
            pass
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
