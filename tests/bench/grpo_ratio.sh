#!/bin/sh
# Sets a GRPO step of arena against one in plain PyTorch: SmolLM2-135M with LoRA of rank 16 on all
# linear layers, f32, two threads, the same number of sequences, prompt and reply lengths, rollouts
# included. Prints seconds, tokens per second, their ratio and peak memory. Nothing else should run.
#
#   tests/bench/grpo_ratio.sh [--groups N] [--group N] [--prompt N] [--reply N] ...
#
# PyTorch, transformers and peft come from the package index into target/venv-oracle.
set -eu

cd "$(dirname "$0")/../.."
venv=target/venv-oracle
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check \
    --requirement tests/parity/requirements-oracle.txt
cargo build --quiet --package arena
target/debug/arena model pull smollm2 >&2
model=${ARENA_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/arena/models}/smollm2/model.gguf
cargo build --quiet --workspace --example grpo_step
ours=$(target/debug/examples/grpo_step "$model" "$@")
theirs=$("$venv/bin/python" tests/bench/grpo_torch.py "$model" "$@" 2>/dev/null)
python3 - "$ours" "$theirs" <<'END'
import json
import sys

ours, theirs = (json.loads(text) for text in sys.argv[1:])
assert ours["trained_parameters"] == theirs["trained_parameters"], (ours, theirs)
print(f"{'':24}{'arena':>10}{'PyTorch':>10}{'ratio':>8}")
for name, better in [("rollout_seconds", -1), ("update_seconds", -1), ("tokens_per_second", 1)]:
    ratio = (ours[name] / theirs[name]) ** better
    print(f"{name:24}{ours[name]:>10.1f}{theirs[name]:>10.1f}{ratio:>8.2f}")
print(f"{'peak_mib':24}{ours['peak_mib']:>10.0f}{theirs['peak_mib']:>10.0f}")
END
