"""Where Nsight Systems is installed. Imports nothing of the runner."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FOLDERS = (
    "/opt/nvidia/nsight-systems/*/bin", "/opt/nvidia/nsight-systems/*/target-linux-*", "/usr/local/cuda*/bin",
    "/usr/lib/nsight-systems/bin",
)  # fmt: skip
"""Where nsys lies when it is not on the PATH."""
GET_IT = "it comes with the CUDA toolkit, or from https://developer.nvidia.com/nsight-systems"


def find() -> Path | None:
    """The program nsys: on the PATH, else where its installers put it, the newest of several; None if it is nowhere."""
    if on_path := shutil.which("nsys"):
        return Path(on_path)
    found = [each for pattern in FOLDERS for each in Path("/").glob(f"{pattern[1:]}/nsys") if os.access(each, os.X_OK)]
    return max(found, key=lambda each: each.stat().st_mtime, default=None)


def importer_of(nsys: Path) -> Path | None:
    """QdstrmImporter of an installation: in host-linux-*/ beside the folder of nsys, however nsys is linked to."""
    seen: list[Path] = []
    step = nsys
    while step not in seen and len(seen) < 20:
        seen.append(step)
        step = step.parent / step.readlink() if step.is_symlink() else step.resolve()
    for place in seen:
        for root in (place.parent, place.parent.parent, Path("/usr/lib/nsight-systems")):
            for found in sorted(root.glob("host-linux-*/QdstrmImporter")):
                return found
    return None


def places() -> str:
    """Where it is looked for besides the PATH, as a list in a sentence."""
    return ", ".join(dict.fromkeys(pattern.partition("/*")[0] for pattern in FOLDERS))
