"""Runs arena's engine and llama.cpp in turns and prints ratios. Started by llm_ratio.sh.

Each round runs every load once with each engine; the best of the rounds counts for both, since
other work on the machine only slows down. Standard library only.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import urllib.request

THREADS = 2
# Runs of a load within a round, of which the best counts: as many as `arena model bench` makes.
RUNS = 3
# Prompt tokens, reply tokens, dialogues at once. The first is the load for prefill.
LOADS = [(512, 8, 1), (1024, 8, 1), (128, 64, 1), (1024, 64, 1), (64, 32, 16), (512, 32, 16),
         (64, 32, 64)]
# What arena aims at: kind, dialogues, ratio.
TARGETS = [("prefill", 1, 0.8), ("decode", 1, 0.6), ("decode", 16, 1.0), ("decode", 64, 1.5)]


def fetch(filename, path):
    """Fetches one file of the package index that pip uses by default."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    project = filename.rsplit("-", 1)[0].replace("_", "-")
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    page = urllib.request.Request(f"{index}/{project}/", headers=accept)
    with urllib.request.urlopen(page) as page:
        files = json.load(page)["files"]
    url = next(entry["url"] for entry in files if entry["filename"] == filename)
    with urllib.request.urlopen(url) as answer:
        pathlib.Path(path).write_bytes(answer.read())


def model_file():
    """Returns where arena keeps the model."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    store = os.environ.get("ARENA_MODELS") or f"{data}/arena/models"
    return f"{store}/smollm2/model.gguf"


def peak_of(command):
    """Runs a command; returns its output and its peak memory in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"error: {' '.join(command)} ended with status {status}")
    return out, usage.ru_maxrss / 1024


def measure_peer(args, prompt, reply, dialogues):
    command = [args.peer, model_file(), args.backends]
    runs = [dialogues] * RUNS
    out, peak = peak_of(command + [str(n) for n in [THREADS, prompt, reply, *runs]])
    lines = [json.loads(line) for line in out.splitlines()]
    best = lambda kind: max(line[kind] for line in lines)
    return {"prefill": best("prefill"), "decode": best("decode"), "peak_mib": peak}


def measure_arena(args, prompt, reply, dialogues):
    command = [args.arena, "model", "bench", "smollm2", "--json", f"--threads={THREADS}"]
    command += [f"--batches={dialogues}", f"--prompt={prompt}", f"--reply={reply}"]
    out, peak = peak_of(command)
    load = json.loads(out)["loads"][0]
    rate = lambda kind: load[f"{kind}_tokens_per_second"]
    return {"prefill": rate("prefill"), "decode": rate("decode"), "peak_mib": peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arena")
    parser.add_argument("--peer")
    parser.add_argument("--backends")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fetch", nargs=2)
    args = parser.parse_args()
    if args.fetch:
        return fetch(*args.fetch)
    rows = []
    for prompt, reply, dialogues in LOADS:
        load = (prompt, reply, dialogues)
        print(f"measuring {dialogues} dialogues", file=sys.stderr)
        rounds = []
        for _ in range(args.rounds):
            rounds.append((measure_arena(args, *load), measure_peer(args, *load)))
        best = lambda side, key: max(both[side][key] for both in rounds)
        row = {"prompt": prompt, "reply": reply, "dialogues": dialogues}
        for kind in ("prefill", "decode"):
            row[kind] = {"arena": best(0, kind), "llama.cpp": best(1, kind)}
            row[kind]["ratio"] = row[kind]["arena"] / row[kind]["llama.cpp"]
            per_round = [ours[kind] / theirs[kind] for ours, theirs in rounds]
            row[kind]["ratio_median_of_rounds"] = statistics.median(per_round)
        row["peak_mib"] = {"arena": best(0, "peak_mib"), "llama.cpp": best(1, "peak_mib")}
        rows.append(row)
    if args.json:
        document = {"threads": THREADS, "rounds": args.rounds, "loads": rows}
        return print(json.dumps(document, indent=2))
    print(f"SmolLM2-135M Q4_1, {THREADS} threads, tokens per second, best of {args.rounds} rounds")
    print("prompt reply dialogues  kind     arena  llama.cpp  ratio  target  peak MiB (both)")
    for number, row in enumerate(rows):
        kind = "prefill" if number == 0 else "decode"
        target = next(t for k, n, t in TARGETS if (k, n) == (kind, row["dialogues"]))
        rates, peak = row[kind], row["peak_mib"]
        print(f"{row['prompt']:>6} {row['reply']:>5} {row['dialogues']:>9}  {kind:<7}"
              f"{rates['arena']:>7.0f} {rates['llama.cpp']:>10.0f} {rates['ratio']:>6.2f}"
              f" {target:>7.1f}"
              f"  {peak['arena']:>8.0f} {peak['llama.cpp']:>6.0f}")


if __name__ == "__main__":
    main()
