"""Makes fixtures/smollm2.json: what `transformers` gives for SmolLM2-135M on 56 prompts.

    python make_smollm2.py QUANTISED.gguf F32.gguf

QUANTISED is the packaged file, F32 what dequantise_gguf.py made of it. Everything is computed in
f32 on the CPU. For each prompt: its token ids, the greedy continuation (24 tokens, or up to and
with the end-of-turn token), and the ten largest logits at the first and the last of these
positions. Where the two largest logits of a position lie closer than NEAR_TIE, the position is
listed: another order of additions may take the other token there.

The ids of prompts are checked against llama.cpp's tokeniser, which knows nothing of `tokenizers`.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import urllib.request

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM

import prompts

OUTPUT_TOKENS = 24
TOP = 10
NEAR_TIE = 1e-3
HERE = pathlib.Path(__file__).parent


def tokenizer_of(path: str) -> tuple[Tokenizer, list[str]]:
    """Returns the byte-level BPE of the file's metadata, and its control tokens."""
    fields = GGUFReader(path).fields
    assert fields["tokenizer.ggml.pre"].contents() == "smollm"
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(line.split(" ")) for line in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, merges))
    # What the tag `smollm` stands for: digits one by one, then GPT-2's pattern.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, kinds) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in control])
    return tokenizer, control


def pieces(messages: list[tuple[str, str]]) -> list[tuple[str, bool]]:
    """Returns the template's text and the messages' contents apart: (text, is content)."""
    if messages[0][0] != "system":
        line = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
        messages = [("system", line), *messages]
    found = []
    for role, content in messages:
        found += [(f"<|im_start|>{role}\n", False), (content, True), ("<|im_end|>\n", False)]
    return [*found, ("<|im_start|>assistant\n", False)]


def prompt_ids(tokenizer: Tokenizer, prompt: dict) -> list[int]:
    """Returns ids in which no content became a control token."""
    parts = [(prompt["text"], True)] if "text" in prompt else pieces(prompt["messages"])
    ids = []
    for text, is_content in parts:
        tokenizer.encode_special_tokens = is_content
        ids += tokenizer.encode(text, add_special_tokens=False).ids
    return ids


class LlamaServer:
    """llama.cpp's server, for its tokeniser and its rendering of the template."""

    def __init__(self, path: str):
        command = [sys.executable, str(HERE / "serve.py"), path]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe,
                                        stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()

    def ask(self, route: str, body: dict) -> dict:
        data = json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.address}/{route}", data) as reply:
            return json.load(reply)

    def ids(self, prompt: dict) -> list[int]:
        if "text" in prompt:
            return self.tokens(prompt["text"], False)
        messages = [{"role": role, "content": text} for role, text in prompt["messages"]]
        return self.tokens(self.ask("apply-template", {"messages": messages})["prompt"], True)

    def tokens(self, text: str, marks: bool) -> list[int]:
        body = {"content": text, "add_special": False, "parse_special": marks}
        return self.ask("tokenize", body)["tokens"]

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def top(logits: torch.Tensor) -> list[list]:
    values, ids = torch.topk(logits, TOP)
    return [[int(id), round(float(value), 4)] for id, value in zip(ids, values)]


@torch.inference_mode()
def continued(model, ids: list[int], end: int) -> dict:
    output, near_ties, cache = [], [], None
    fed = torch.tensor([ids])
    while len(output) < OUTPUT_TOKENS and (not output or output[-1] != end):
        result = model(fed, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, logits = result.past_key_values, result.logits[0, -1]
        best = top(logits)
        if not output:
            first = best
        two = torch.topk(logits, 2).values
        if float(two[0] - two[1]) < NEAR_TIE:
            near_ties.append({"position": len(output), "ids": [best[0][0], best[1][0]]})
        output.append(best[0][0])
        fed = torch.tensor([[output[-1]]])
    return {"output": output, "first_top": first, "last_top": best, "near_ties": near_ties}


def main(quantised: str, f32: str) -> None:
    # Two threads on a busy machine wait for each other more than they compute.
    torch.set_num_threads(1)
    tokenizer, control = tokenizer_of(quantised)
    folder, name = str(pathlib.Path(f32).parent), pathlib.Path(f32).name
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager").eval()
    server = LlamaServer(quantised)
    cases = []
    for prompt in prompts.prompts():
        ids = prompt_ids(tokenizer, prompt)
        forged = any(mark in text for _, text in prompt.get("messages", []) for mark in control)
        assert forged or ids == server.ids(prompt), (prompt["name"], ids, server.ids(prompt))
        case = {**prompt, "ids": ids, **continued(model, ids, tokenizer.token_to_id("<|im_end|>"))}
        cases.append(case)
        print(f"{prompt['name']}: {len(ids)} tokens, near ties {case['near_ties']}", flush=True)
    server.stop()
    with open(quantised, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    header = {"model_sha256": digest, "dtype": "f32", "near_tie": NEAR_TIE}
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    text = f'{{"about": {json.dumps(header)},\n"cases": [\n{lines}\n]}}\n'
    (HERE / "fixtures/smollm2.json").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
