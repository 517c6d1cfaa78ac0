"""One GRPO step on SmolLM2-135M with LoRA in plain PyTorch: rollouts, then the update.

The peer of `arena train bench`: the same weights, number of sequences, prompt and reply lengths,
rank and precision (f32), the same objective (token-level, clipped ratio, group-mean advantage),
AdamW. Replies are sampled by `transformers`' generate with its KV cache, all sequences in one
batch; log-probabilities are computed at reply tokens only. Started by grpo_ratio.sh.
"""

import argparse
import json
import os
import pathlib
import resource
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CLIP_LOW, CLIP_HIGH = 0.2, 0.28


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path, help="a GGUF file")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=192, help="tokens")
    parser.add_argument("--reply", type=int, default=64, help="tokens")
    parser.add_argument("--micro-batch", type=int, default=8, help="sequences")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2, help="the best counts")
    return parser.parse_args()


def load(args):
    model = AutoModelForCausalLM.from_pretrained(
        args.model.parent, gguf_file=args.model.name, dtype=torch.float32)
    config = LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules=LINEAR)
    return get_peft_model(model, config)


def rollouts(model, args, step):
    """Samples one reply for each sequence; a group shares its prompt."""
    draws = torch.Generator().manual_seed(step)
    prompts = torch.randint(1_000, 40_000, (args.groups, args.prompt), generator=draws)
    prompts = prompts.repeat_interleave(args.group, dim=0)
    model.eval()
    with torch.no_grad():
        return model.generate(
            prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0,
            top_k=0, top_p=1.0, max_new_tokens=args.reply, min_new_tokens=args.reply,
            pad_token_id=0)


def logprobs(model, tokens, args):
    """Returns log p of the reply's tokens; logits are computed at their places alone."""
    places = torch.arange(args.prompt - 1, tokens.shape[1] - 1)
    logits = model(tokens, use_cache=False, logits_to_keep=places).logits.float()
    chosen = tokens[:, args.prompt:]
    return torch.gather(logits.log_softmax(-1), 2, chosen[..., None])[..., 0]


def update(model, optimiser, tokens, args):
    """One epoch over the batch in micro-batches; rewards are drawn, which costs as much."""
    count = tokens.shape[0]
    rewards = torch.rand(args.groups, args.group)
    advantages = (rewards - rewards.mean(1, keepdim=True)).reshape(count)
    total = count * args.reply
    model.train()
    for first in range(0, count, args.micro_batch):
        part = slice(first, first + args.micro_batch)
        now = logprobs(model, tokens[part], args)
        ratio = (now - now.detach()).exp()
        clipped = ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH)
        advantage = advantages[part, None]
        loss = -torch.minimum(ratio * advantage, clipped * advantage).sum() / total
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = load(args)
    trained = [value for value in model.parameters() if value.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-4)
    best = None
    for step in range(args.steps):
        started = time.monotonic()
        tokens = rollouts(model, args, step)
        sampled = time.monotonic()
        update(model, optimiser, tokens, args)
        ended = time.monotonic()
        row = {"rollout_seconds": sampled - started, "update_seconds": ended - sampled,
               "tokens_per_second": tokens.numel() / (ended - started)}
        if best is None or row["tokens_per_second"] > best["tokens_per_second"]:
            best = row
    best["trained_parameters"] = sum(value.numel() for value in trained)
    best["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(best))


main()
