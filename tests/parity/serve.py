"""Serves a GGUF file with llama.cpp's own server until standard input ends.

    python serve.py MODEL.gguf

Prints the server's address, such as http://127.0.0.1:41873, as the only line of standard output,
once requests are answered. Whoever starts this holds its standard input: when that process dies,
however it dies, the server ends too.
"""

import sys
import urllib.request

import xllamacpp


def serve(path: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    # A free port of the system's choice: two servers at once do not meet.
    params.port = 0
    params.n_ctx = 2048
    params.n_parallel = 2
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 2
    params.cpuparams_batch.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    address = server.listening_address
    with urllib.request.urlopen(f"{address}/health", timeout=60) as reply:
        reply.read()
    print(address, flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    serve(sys.argv[1])
