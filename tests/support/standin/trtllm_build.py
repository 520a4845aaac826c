"""A stand-in for trtllm-build: it builds nothing. It checks what it is given and writes a folder of the right form.

It takes the options that the release in release.json beside it has, as argparse would, wants a whole checkpoint, and
writes files that say what they are. STANDIN_… variables make it misbehave. Standard library only: it runs in an image.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

NOTICE = "stand-in for a TensorRT-LLM engine: made by a test program, no engine"


def main() -> None:
    release = json.loads(Path(__file__).with_name("release.json").read_text())
    version = os.environ.get("STANDIN_SAYS", release["name"])
    say(f"[TensorRT-LLM] TensorRT-LLM version: {version}")  # as importing it does
    options = vars(parser_of(release).parse_args())
    say(NOTICE)
    checkpoint, out = Path(options["checkpoint_dir"]), Path(options["output_dir"])
    config = read_checkpoint(checkpoint)
    misbehave(out)
    out.mkdir(parents=True, exist_ok=True)
    write_engine(out, release, config, options)
    say("[TRT-LLM] [I] Total time of building all engines: 00:00:00")


def parser_of(release: dict) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trtllm-build", allow_abbrev=False)
    for name, option in release["options"].items():
        names = [f"--{name}", *(f"--{alias}" for alias in option["aliases"])]
        choices = ("enable", "disable") if option["type"] == "switch" else option["choices"] or None
        if option["type"] == "flag":
            parser.add_argument(*names, dest=name, action="store_true")
        elif option["type"] == "list":
            parser.add_argument(*names, dest=name, nargs="+", choices=choices)
        else:
            kind = int if option["type"] == "int" else str
            parser.add_argument(*names, dest=name, type=kind, default=option["default"], choices=choices)
    return parser


def read_checkpoint(folder: Path) -> dict:
    config = json.loads((folder / "config.json").read_text())
    for rank in range(config["mapping"]["world_size"]):
        if not (folder / f"rank{rank}.safetensors").stat().st_size:
            sys.exit(f"rank{rank}.safetensors is empty")
    probe = folder / "written-by-the-build"
    try:
        probe.touch()
    except OSError:
        return config
    probe.unlink()
    if os.environ.get("STANDIN_READ_ONLY"):
        sys.exit("the checkpoint can be written")
    return config


def misbehave(out: Path) -> None:
    for number in range(int(os.environ.get("STANDIN_LINES", "0"))):
        say(f"[TRT-LLM] [I] building layer {number}")
    if message := os.environ.get("STANDIN_FAIL"):
        raise RuntimeError(message)
    if code := os.environ.get("STANDIN_EXIT"):
        sys.exit(int(code))
    if os.environ.get("STANDIN_HANG"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as a program that is process 1 of a container
        Path(out / "half.engine").write_text(NOTICE)
        say("hanging")
        while True:
            signal.pause()
    time.sleep(float(os.environ.get("STANDIN_SILENT_S", "0")))
    if size := os.environ.get("STANDIN_ALLOCATE_MIB"):
        say("waiting to allocate")
        deadline_s = time.monotonic() + 30
        while not (out / "go").exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        memory = [b"x" * 2**20 for _ in range(int(size))]
        say(f"allocated {len(memory)} MiB")


def write_engine(out: Path, release: dict, config: dict, options: dict) -> None:
    build_config = {
        "max_batch_size": options["max_batch_size"],
        "max_input_len": options["max_input_len"],
        "max_beam_width": options["max_beam_width"],
        "max_num_tokens": options["max_num_tokens"],
        "plugin_config": {name: value for name, value in options.items() if name.endswith(("_plugin", "_fmha"))},
    }
    length = "max_seq_len" if options.get("max_seq_len") else "max_output_len"
    build_config[length] = options[length]
    build_config |= json.loads(os.environ.get("STANDIN_BUILD_CONFIG", "{}"))
    version = os.environ.get("STANDIN_VERSION", release["name"])
    content = {"stand_in": NOTICE, "version": version, "pretrained_config": config, "build_config": build_config}
    (out / "config.json").write_text(json.dumps(content, indent=2))
    for rank in range(config["mapping"]["world_size"]):
        if str(rank) != os.environ.get("STANDIN_SKIP_RANK"):
            made_with = {"notice": NOTICE, "rank": rank, "environment": gpu_environment()}
            (out / f"rank{rank}.engine").write_text(json.dumps(made_with) + "\n")
    if os.environ.get("STANDIN_TIMING_CACHE"):
        Path("model.cache").write_text(NOTICE)  # into whatever folder it was started in


def gpu_environment() -> dict:
    return {name: value for name, value in os.environ.items() if name.endswith("_VISIBLE_DEVICES")}


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
