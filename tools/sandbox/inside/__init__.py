"""What runs inside the sandbox; standard library only.

The repository cannot be imported there: the texts of these files are given to an interpreter
of its own (`mounts.program`), and every process inside is a fork of that one.

    warm.py        imports numpy and pandas once and forks for every episode. It ends with the
                   process that asks
    supervisor.py  process 1 of an episode's namespaces. It starts the two below, watches them, and
                   ends what a step leaves behind. It runs no program, and no program can signal it
                   or read its memory
    programs.py    without rights and within limits: the interpreter of an episode, and a shell for
                   one command
    kernel.py      the system calls of all of them
    frames.py      the messages between a supervisor and the process that asks
"""
