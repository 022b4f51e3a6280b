"""A model that writes token after token, watched from outside: one line, and nothing in the model or the loop changes.

    python docs/examples/watch_generate.py [STORE]
    python -m analysis sql "SELECT params, wall_us, sentence FROM bounds" --store STORE

Every forward call is a step. Reading the prompt and writing one token have inputs of different shapes, so they are two
kinds of step and two rows. With the extra `llm` the model is a small Llama of random weights and the loop is
transformers' own `generate()`; without transformers it is a small model with the same two kinds of calls.
"""

import sys

import torch

from runner import watch

PROMPT, TOKENS, ANSWERS = 32, 24, 12


class Writer(torch.nn.Module):
    """A recurrent model that keeps its state between tokens as a language model keeps its cache."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = torch.nn.Embedding(512, 64), torch.nn.GRU(64, 64, batch_first=True)
        self.head = torch.nn.Linear(64, 512)

    def forward(self, tokens: torch.Tensor, state: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """tokens: batch x length; logits of the last place, and the state behind it."""
        hidden, state = self.cell(self.embedding(tokens), state)
        return self.head(hidden[:, -1]), state

    def generate(self, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        """The prompt and what follows, always the most likely token."""
        logits, state = self(tokens)
        for _ in range(max_new_tokens):
            newest = logits.argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, newest], 1)
            logits, state = self(newest, state)
        return tokens


def small_model() -> torch.nn.Module:
    """A Llama of random weights, nothing downloaded; without transformers the model above."""
    torch.manual_seed(0)
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return Writer()
    config = LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def main(store: str) -> list[int]:
    """Some answers; the last one's tokens."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = small_model().to(device).eval()
    prompt = torch.randint(1, 512, (1, PROMPT), device=device)
    tokens = prompt
    with watch(model, store=store, name="generate", steps=10), torch.no_grad():
        for _ in range(ANSWERS):
            options = {} if isinstance(model, Writer) else {"do_sample": False}
            tokens = model.generate(prompt, max_new_tokens=TOKENS, **options)
    return tokens[0].tolist()


if __name__ == "__main__":
    print(*main(sys.argv[1] if len(sys.argv) > 1 else "outputs/store"))
