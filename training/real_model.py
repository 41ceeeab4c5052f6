"""Make an ordinary model folder of a pretrained language model that a laptop can run.

    make real-model MODEL=qwen2.5-coder-0.5b        # models/qwen2.5-coder-0.5b: Chinese, English, SQL, tools, 491 MB
    make real-model                                 # models/smollm2-135m: English, 98 MB
    .venv/bin/python -m training.real_model qwen2.5-coder-0.5b --from modelscope
    .venv/bin/python -m training.real_model qwen2.5-coder-0.5b --file ~/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf

A model is one GGUF file of its makers, whose SHA-256 is compared. HF_ENDPOINT names a mirror of the
hub. The same command goes on after Ctrl-C. Exit codes: 0 done, 1 failed, 2 wrong usage, 130
interrupted.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from common.command import Failure, UsageError, new_parser, run_command
from common.files import check_writable, file_digest, replacing
from common.settings import ROOT, WORK
from common.stopping import stop_in_order

READER = ROOT / "requirements" / "gguf.txt"
MODELSCOPE = "https://www.modelscope.cn/models"
# Measured: a file of 491 MB takes 3.4 GB while it is read, and makes a folder of 1.0 GB.
MEMORY_FACTOR = 7
FOLDER_FACTOR = 4
SPARE_BYTES = 500_000_000
# A model that ties its two matrices may still be published with both, quantised differently: they
# then differ by 4 % of their norm. Matrices that were trained apart have nothing in common.
TIED_DIFFERENCE = 0.2


@dataclass(frozen=True)
class Published:
    """A GGUF file as it was published, and where: in a repository, or in a package of pip's."""

    file: str
    bytes: int
    sha256: str
    name: str
    repository: str = ""
    package: Path | None = None


MODELS = {
    "smollm2-135m": Published(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "SmolLM2-135M-Instruct",
        package=ROOT / "requirements" / "smollm2-135m.txt",
    ),
    "qwen2.5-coder-0.5b": Published(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Qwen2.5-Coder-0.5B-Instruct",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    ),
}
DEFAULT = "smollm2-135m"
CARD = """---
license: apache-2.0
library_name: transformers
---

# {name}, from a quantised file

Read from the GGUF file {file} (SHA-256 {sha256}) and saved in bfloat16, {parameters:,} parameters.
About four bits a weight were kept, so it answers a little worse than the original. Not for medical use.
"""


def make_folder(published: Published, file: Path | None, source: str, out: Path) -> None:
    """Fetch the file unless it is given, convert it, and write the folder, whole or not at all.

    Raises UsageError: the folder exists, or the file is another one. Raises Failure: the file
    cannot be fetched or read, or the disk or the memory is too small.
    """
    if out.exists():
        raise UsageError(f"--out {out} exists; remove it, or give another")
    check_writable(out.parent, "--out")
    if file:
        check_file(file, published)
    out.parent.mkdir(parents=True, exist_ok=True)
    check_room(out.parent, published.bytes, fetching=not file)
    fetched = out.parent / f"{published.file}.part"
    with replacing(out) as draft:
        work = draft.parent
        if find_spec("gguf") is None:
            reader = work / "reader"
            shutil.unpack_archive(pip_download(READER, work / "wheels"), reader, "zip")
            sys.path.append(str(reader))  # transformers imports it
        weights = file or fetch(published, source, fetched, work)
        print(f"converting {weights.name}", file=sys.stderr)
        convert(weights, published, draft)
    fetched.unlink(missing_ok=True)


def check_file(file: Path, published: Published) -> None:
    """Raise UsageError if a file is not the published one."""
    if not file.is_file():
        raise UsageError(f"--file {file} is not there")
    digest = file_digest(file)
    if digest != published.sha256:
        raise UsageError(
            f"{file} has {file.stat().st_size:,} bytes and the SHA-256 {digest}; its makers "
            f"published {published.bytes:,} and {published.sha256}: it is damaged, a part, or "
            "another file. Fetch it again"
        )


def check_room(folder: Path, size: int, fetching: bool) -> None:
    """Raise Failure if the disk or the memory is too small for converting such a file."""
    free = shutil.disk_usage(folder).free
    needed = FOLDER_FACTOR * size
    if fetching:
        needed += size
    if free < needed:
        raise Failure(
            f"{folder} has {free / 1e9:.1f} GB free, needed are {needed / 1e9:.1f}; free some, or "
            "choose another disk with --out"
        )
    available = psutil.virtual_memory().available
    needed = MEMORY_FACTOR * size + SPARE_BYTES
    if available < needed:
        raise Failure(
            f"{available / 1e9:.1f} GB of memory are available, needed are {needed / 1e9:.1f}; end "
            "other programs"
        )


def fetch(published: Published, source: str, part: Path, work: Path) -> Path:
    """Return the published file, going on with what is there. Raises Failure."""
    if published.package:
        wheel = pip_download(published.package, work / "package")
        shutil.unpack_archive(wheel, work / "unpacked", "zip")
        weights = next((work / "unpacked").rglob(published.file))
    else:
        download(published, source, part)
        weights = part
    try:
        check_file(weights, published)
    except UsageError as error:
        part.unlink(missing_ok=True)
        raise Failure(f"{error}, which the same command does") from None
    return weights


def download(published: Published, source: str, part: Path) -> None:
    """Write what is missing of a file. Raises Failure."""
    import httpx
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get

    if source == "modelscope":
        url = f"{MODELSCOPE}/{published.repository}/resolve/master/{published.file}"
    else:
        url = hf_hub_url(published.repository, published.file)
    print(f"fetching {url}", file=sys.stderr)
    try:
        with part.open("a+b") as file:
            begun = file.tell()
            file.seek(0)
            # Such as a page to log in
            if file.read(4) != b"GGUF" or begun > published.bytes:
                begun = file.truncate(0)
            file.seek(begun)
            http_get(url, file, resume_size=begun, expected_size=published.bytes)
    except (OSError, httpx.HTTPError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise Failure(
            f"{url} cannot be fetched: {reason}. Check the network and the disk, name a mirror "
            "with HF_ENDPOINT, take --from modelscope, or fetch it elsewhere and give it with "
            "--file; what is there of it is kept"
        ) from None


def pip_download(lock: Path, folder: Path) -> Path:
    """Return the file that pip downloaded. pip compares its checksum. Raises Failure."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["-r", str(lock), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise Failure(
            f"pip cannot fetch what {lock.relative_to(ROOT)} names: {last}. Check the network and "
            "pip's index, or fetch the file elsewhere and name its folder with PIP_FIND_LINKS"
        )
    return next(folder.glob("*.whl"))


def convert(weights: Path, published: Published, draft: Path) -> None:
    """Write weights, configuration, tokenizer, template and a card to a folder. Raises Failure."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(**source)
        model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise Failure(f"transformers cannot read {weights}: {error}") from None
    tie(model)
    end = end_of_turn(tokenizer)
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    tokenizer.model_max_length = model.config.max_position_embeddings
    others = [model.config.eos_token_id, tokenizer.pad_token_id]
    model.config.eos_token_id = end
    ends = [end, *(token for token in others if token is not None)]
    model.generation_config.eos_token_id = [*dict.fromkeys(ends)]
    model.config._model_name_or_path = published.name  # the file has another one
    import_module("training.warmup.supervised").save(model, tokenizer, draft)
    card = CARD.format(**vars(published), parameters=model.num_parameters())
    (draft / "README.md").write_text(card, encoding="utf-8")


def tie(model: Any) -> None:
    """Make the embedding the output's matrix, which keeps more bits, if the two were one."""
    import torch

    embedding = model.get_input_embeddings().weight
    output = model.get_output_embeddings().weight
    if model.config.tie_word_embeddings or embedding.shape != output.shape:
        return
    with torch.no_grad():
        difference = (output - embedding).norm() / embedding.norm()
        if difference > TIED_DIFFERENCE:
            return
        embedding.copy_(output)
    model.config.tie_word_embeddings = True
    model.tie_weights()


def end_of_turn(tokenizer: Any) -> int:
    """Return the token that the chat template writes behind a reply."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "yes"}]
    behind = tokenizer.apply_chat_template(turns, tokenize=False).rpartition("yes")[2]
    return int(tokenizer(behind, add_special_tokens=False)["input_ids"][0])


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    models = ", ".join(MODELS)
    add("model", nargs="?", default=DEFAULT, help=f"{models}; default: {DEFAULT}")
    add("--out", type=Path, help="folder to make; default: models/MODEL")
    add("--file", type=Path, metavar="GGUF", help="a file that is already here")
    sources = ["hub", "modelscope"]
    add("--from", dest="source", choices=sources, default="hub", help="default: hub")
    given = parser.parse_args(argv)
    if given.model not in MODELS:
        parser.error(
            f"unknown model {given.model}; expected one of {models}. A model of the hub with "
            "safetensors needs none of this: give its id to --model"
        )
    out = given.out or WORK / "models" / given.model
    stop_in_order()

    def make() -> None:
        make_folder(MODELS[given.model], given.file, given.source, out)
        print(out)

    return run_command("real_model", make, afterwards=f"{out} is whole or not there")


if __name__ == "__main__":
    sys.exit(main())
