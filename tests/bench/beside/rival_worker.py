"""The rival in a process of its own: llama.cpp's server through the `xllamacpp` wheel, asked without its socket.

Its batch sizes and cache are llama.cpp's own defaults, as are its weights' layout and its attention; threads, window
and file are ours, sampling is greedy. What it keeps of the last prompt it reuses.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from tests.bench.beside.pipe import Answer, peak_mb, serve

PLAIN = "none"
SPECULATIONS = (PLAIN, "ngram_simple", "ngram_map_k", "ngram_map_k4v", "ngram_mod", "ngram_cache")
CONTEXT_TOKENS = 4096


def started(path: str, threads: int, speculation: str) -> Any:
    """A server with `path` loaded."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = CONTEXT_TOKENS
    params.n_gpu_layers = 0
    params.fit_params = False
    params.verbosity = 0
    for processors in (params.cpuparams, params.cpuparams_batch):
        processors.n_threads = threads
    kind = getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{speculation.upper()}")
    params.speculative.types = [kind]
    return xllamacpp.Server(params)


def asked(server: Any, question: Answer) -> Answer:
    """Complete a prompt of ids: exactly `tokens` of them with `whole`, else up to the rival's own end or `stop`."""
    wanted = {
        "prompt": question["prompt"],
        "max_tokens": question["tokens"],
        "temperature": 0.0,
        "top_k": 1,
        "samplers": ["top_k"],
        "cache_prompt": True,
        "ignore_eos": question["whole"],
        "stop": [question["stop"]] if question["stop"] else [],
    }
    began = perf_counter()
    reply = server.handle_completions(wanted)
    seconds = perf_counter() - began
    if "choices" not in reply:
        raise RuntimeError(f"the rival refused: {reply}")
    return {
        "ms": round(seconds * 1000, 3),
        "text": reply["choices"][0]["text"],
        "finish": reply["choices"][0]["finish_reason"],
        "tokens": reply["usage"]["completion_tokens"],
        "timings": reply["timings"],
    }


def main() -> None:
    """Start the server that the command line names (file, threads, speculation) and answer."""
    began = perf_counter()
    server = started(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    ready = perf_counter() - began

    def answer(question: Answer) -> Answer:
        if question["op"] == "facts":
            import xllamacpp

            system = xllamacpp.get_system_info()
            version = xllamacpp.__version__
            return {"ready_s": round(ready, 3), "peak_mb": peak_mb(), "system": system, "version": version}
        return asked(server, question)

    serve(answer)


if __name__ == "__main__":
    main()
