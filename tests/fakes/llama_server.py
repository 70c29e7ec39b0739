"""llama.cpp's own server as a process: `python -m tests.fakes.llama_server MODEL.gguf` prints its address.

It is the real thing, from the `xllamacpp` wheel, on one thread and with one slot, of which `/slots` tells whether it
works.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WINDOW = 2048


def main() -> None:
    """Serve until standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.model_alias = {"qwen2.5-coder-0.5b"}
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.fit_params = False
    params.verbosity = 0
    params.port = 0
    params.endpoint_slots = True
    for processors in (params.cpuparams, params.cpuparams_batch):
        processors.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


@contextmanager
def llama_server(model: Path) -> Iterator[str]:
    """The address of a server of this test's own; it is gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.llama_server", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("http://"):
                yield line.strip()
                return
        raise RuntimeError(f"llama.cpp's server left with {process.wait()}")
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    main()
