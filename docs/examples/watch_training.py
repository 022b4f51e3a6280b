"""A training loop that measures itself: steps, phases and the wait for the next batch are marked by hand.

    python docs/examples/watch_training.py [STORE]
    python -m analysis sql "SELECT sentence FROM bounds" --store STORE

The data set is slow on purpose (4 ms a sample that is read in the loop's own process), so the verdict on most machines
is `input-bound`; with `DataLoader(..., num_workers=2)` it no longer is.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

from runner import phase, watch


class SlowImages(Dataset):
    """Vectors that take 4 ms each to read."""

    def __len__(self) -> int:
        return 360

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.004)
        return torch.full((64,), float(index % 7)), index % 10


def train(store: str) -> float:
    """One pass over the data; the last loss."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    loss = torch.zeros(())
    with watch(store=store, name="training", skip=10) as watched:
        for inputs, labels in watched.steps(DataLoader(SlowImages(), batch_size=8)):
            with phase("forward"):
                loss = torch.nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            with phase("backward"):
                loss.backward()
            with phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    return loss.item()


if __name__ == "__main__":
    print(f"loss {train(sys.argv[1] if len(sys.argv) > 1 else 'outputs/store'):.4f}")
