"""Programs in processes of their own, which do not import again what all of them begin with.

A server is a process that has run what the programs begin with, and forks a child for each.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache

SERVER = """
def _serve():
    import json, os, sys, tempfile, traceback

    for line in sys.stdin:
        request = json.loads(line)
        said = [tempfile.TemporaryFile("w+") for _ in range(2)]
        if (child := os.fork()) == 0:
            os.close(0)
            for number, file in enumerate(said, 1):
                os.dup2(file.fileno(), number)
            sys.argv[1:] = request["arguments"]
            code = 0
            try:
                exec(compile(request["program"], "<program>", "exec"), globals())
            except SystemExit as error:
                code = 0 if error.code is None else error.code if type(error.code) is int else 1
            except BaseException:
                traceback.print_exc()
                code = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in said:
            file.seek(0)
        print(json.dumps([status, *(file.read() for file in said)]), flush=True)


_serve()
"""


@cache
def _server(
    start: str, flags: tuple[str, ...], variables: tuple[tuple[str, str], ...]
) -> subprocess.Popen[str]:
    made = subprocess.Popen(
        [sys.executable, *flags, "-c", start + SERVER],
        env={**os.environ, **dict(variables)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, made)
    return made


def _end(server: subprocess.Popen[str]) -> None:
    with contextlib.suppress(OSError):
        server.communicate(timeout=10)


def run(
    start: str,
    program: str,
    *arguments: object,
    flags: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """What a process says that runs ``start``, then ``program``, as `subprocess.run` tells it."""
    server = _server(start, flags, tuple(sorted((variables or {}).items())))
    assert server.stdin is not None
    assert server.stdout is not None
    request = {"program": program, "arguments": [str(x) for x in arguments]}
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    assert answer, f"the server of {start!r} has ended"
    status, out, err = json.loads(answer)
    return subprocess.CompletedProcess(["-c", program], status, out, err)
