"""Makes fixtures/tiny-*: small random checkpoints and what `transformers` computes with them.

    python make_tiny.py

Each folder is a checkpoint as Hugging Face lays them out (config.json, tokenizer.json, weights),
with `expected.json` beside: for two prompts the ids, the greedy continuation, and all logits at
the prompt's last and at the last generated position. tiny-llama-adapter is a PEFT adapter of
tiny-llama. Weights are stored in 16 bits or 32; the expectations are computed in f32 from what was
stored. Norm weights are random too, so that one that is not applied shows.
"""

import json
import pathlib
import shutil

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, trainers

import prompts

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
# Qwen's checkpoints too have more rows of logits than the tokenizer has tokens.
TOKENS, VOCAB = 300, 304
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = TOKENS - 1
OUTPUT_TOKENS = 16
# The pattern of Qwen's tokenizer.json.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content"
    " + '<|im_end|>' + '\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
COMMON = {
    "vocab_size": VOCAB, "num_attention_heads": 4, "max_position_embeddings": 256,
    "initializer_range": 0.15, "bos_token_id": None, "eos_token_id": END,
    "attn_implementation": "eager",
}
QWEN3 = transformers.Qwen3Config(
    **COMMON, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_key_value_heads=1,
    head_dim=32, rope_theta=1e6, tie_word_embeddings=False)
MOE = transformers.Qwen3MoeConfig(
    **COMMON, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_key_value_heads=1,
    head_dim=16, rope_theta=1e6, tie_word_embeddings=True, num_experts=8, num_experts_per_tok=2,
    moe_intermediate_size=16, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])
MOE_RAW = transformers.Qwen3MoeConfig(
    **COMMON, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_key_value_heads=2,
    head_dim=16, rope_theta=1e4, tie_word_embeddings=True, num_experts=8, num_experts_per_tok=2,
    moe_intermediate_size=8, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[])
LLAMA = transformers.LlamaConfig(
    **COMMON, hidden_size=64, intermediate_size=48, num_hidden_layers=2, num_key_value_heads=2,
    head_dim=16, rope_theta=1e4, tie_word_embeddings=True)


def train_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    texts = [text for prompt in prompts.prompts() for _, text in prompt.get("messages", [])]
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS - len(MARKS), show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    assert tokenizer.get_vocab_size() == TOKENS
    return tokenizer


def write_checkpoint(name: str, config, dtype: torch.dtype, shard_size: str = "1GB"):
    """Returns the stored weights as an f32 model."""
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(len(name))
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter_name, parameter in model.named_parameters():
        if "norm" in parameter_name:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    # With large tied embeddings a random model only repeats its last token.
    model.get_input_embeddings().weight.data *= 0.3
    model.to(dtype).save_pretrained(folder, max_shard_size=shard_size)
    settings = {"eos_token": MARKS[2], "pad_token": MARKS[0], "chat_template": TEMPLATE}
    if name == "tiny-qwen3-moe":
        # The newer place of a template.
        (folder / "chat_template.jinja").write_text(settings.pop("chat_template"))
        write_older_config(folder / "config.json")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    text = train_tokenizer().to_str(pretty=False)
    (folder / "tokenizer.json").write_text(text + "\n")
    # Read back, not converted back: what the model computes its rotations from is no weight, is
    # not stored, and would keep the rounding to `dtype`.
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def write_older_config(path: pathlib.Path) -> None:
    """Renames fields to what published checkpoints have; `transformers` writes new ones since 5."""
    config = json.loads(path.read_text())
    config["num_experts"] = config.pop("num_local_experts")
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["rope_scaling"] = None
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.51.0"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


@torch.inference_mode()
def expectations(model) -> list[dict]:
    tokenizer = train_tokenizer()
    texts = ["<|im_start|>user\nI offer $12.50 for the hose.<|im_end|>\n<|im_start|>assistant\n",
             "Ünïcode, digits 90210 and a long line: " + "no deal, " * 12]
    cases = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        output = []
        while len(output) < OUTPUT_TOKENS and (not output or output[-1] != END):
            # Without a cache: the plainest computation there is.
            logits = model(torch.tensor([ids + output]), use_cache=False).logits[0, -1]
            first = logits if not output else first
            output.append(int(logits.argmax()))
        cases.append({"text": text, "ids": ids, "output": output,
                      "first_logits": rounded(first), "last_logits": rounded(logits)})
    return cases


def rounded(logits: torch.Tensor) -> list[float]:
    return [round(float(value), 5) for value in logits]


def write_expectations(name: str, model) -> None:
    lines = ",\n".join(json.dumps(case) for case in expectations(model))
    (FIXTURES / name / "expected.json").write_text(f"[\n{lines}\n]\n")


def write_adapter(base) -> None:
    folder = FIXTURES / "tiny-llama-adapter"
    shutil.rmtree(folder, ignore_errors=True)
    linears = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    base.name_or_path = "tiny-llama"
    config = LoraConfig(r=4, lora_alpha=8, target_modules=linears, task_type="CAUSAL_LM")
    torch.manual_seed(4)
    model = get_peft_model(base, config).eval()
    for name, parameter in model.named_parameters():
        # PEFT starts B at zero, which would change nothing.
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.15)
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    # PEFT keeps a set, whose order differs from run to run.
    path = folder / "adapter_config.json"
    saved = json.loads(path.read_text())
    saved["target_modules"].sort()
    path.write_text(json.dumps(saved, indent=2) + "\n")
    write_expectations("tiny-llama-adapter", model)


def main() -> None:
    made = {
        "tiny-qwen3": (QWEN3, torch.bfloat16, "1GB"),
        "tiny-qwen3-moe": (MOE, torch.bfloat16, "60KB"),
        "tiny-qwen3-moe-raw": (MOE_RAW, torch.float32, "1GB"),
        "tiny-llama": (LLAMA, torch.float16, "1GB"),
    }
    for name, (config, dtype, shard_size) in made.items():
        model = write_checkpoint(name, config, dtype, shard_size)
        write_expectations(name, model)
        if name == "tiny-llama":
            write_adapter(model)
    for path in FIXTURES.glob("tiny-*/*"):
        path.chmod(0o644)


if __name__ == "__main__":
    main()
