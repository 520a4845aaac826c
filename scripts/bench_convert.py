"""How fast a checkpoint is converted beside `cp` of the same files, and in how much memory.

    scripts/bench-convert [--layers 4] [--passes 5] [--cases tp1 tp2 float16] [--work FOLDER] [--json]

Makes a bfloat16 checkpoint in the shape of Llama-2-7B (hidden size 4096, 32 heads, MLP 11008, vocabulary 32000) with
pseudo-random weights from a fixed seed; 4 of its layers have 2.1 GB, all 32 have 13.5 GB. Where the disk has no room
for them, their copy and their conversion, there are fewer, and the output says so. `cp` and the cases take turns, and
each conversion runs in a process of its own, so that its peak memory is its own. Source and results fit into the page
cache or not, as the machine has it; what was written is not waited for, neither by `cp` nor by us.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench_command import in_turn, report
from llama_shapes import LLAMA_2_7B, write_llama_shape

CASES: Mapping[str, Mapping[str, object]] = {
    "tp1": {},
    "tp2": {"tp": 2},
    "tp4pp2": {"tp": 4, "pp": 2},
    "float16": {"dtype": "float16"},
    "float32": {"dtype": "float32"},
    "int4_awq": {"precision": "int4_awq"},
}
# What one conversion runs; it prints the seconds that it took and its peak memory.
_CHILD = """
import json, sys, time
from pathlib import Path
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
options = ConvertOptions(**json.loads(sys.argv[3]))
started = time.perf_counter()
convert(Path(sys.argv[1]), Path(sys.argv[2]), options)
took_s = time.perf_counter() - started
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps([took_s, int(peak.split()[1]) * 1024]))
"""
_SPARE_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Result:
    """One way to go over the checkpoint.

    Args:
        case: ``cp`` or a key of `CASES`.
        source_bytes: Size of the weights that were read.
        took_s: Median of the passes.
        bytes_per_s: Size by that time.
        of_cp: Speed relative to that of `cp`, pass by pass, median.
        peak_bytes: Largest peak of resident memory; 0 for `cp`.
    """

    case: str
    source_bytes: int
    took_s: float
    bytes_per_s: float
    of_cp: float
    peak_bytes: int


def main() -> int:
    """Measure and print."""
    asked = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=asked.work, prefix="bench-convert-") as folder:
        work = Path(folder)
        layers = _layers_that_fit(asked.layers, work, asked.cases)
        if layers < asked.layers:
            print(f"{layers} layers instead of {asked.layers}: the disk has no room for more", file=sys.stderr)
        write_llama_shape(work / "source", LLAMA_2_7B, layers=layers, dtype="BF16")
        report(_measure(work, asked.cases, asked.passes), _line, as_json=asked.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=_count, default=4, help="layers of the checkpoint (32 are Llama-2-7B)")
    parser.add_argument("--passes", type=_count, default=5, help="measured passes, after one that warms up")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["tp1", "tp2", "float16"], help="conversions")
    parser.add_argument("--work", type=_folder, help="folder for the files; by default that for temporary ones")
    parser.add_argument("--json", action="store_true", help="print the results as JSON at the end")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"is {text!r}; expected a whole number from 1")
    return int(text)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no such folder")
    return Path(text)


def _layers_that_fit(layers: int, work: Path, cases: Sequence[str]) -> int:
    """As many layers as the disk has room for twice, and three times with a case that doubles the size."""
    copies = 3 if "float32" in cases else 2
    free_bytes = (shutil.disk_usage(work).free - _SPARE_BYTES) // copies
    rest_bytes = LLAMA_2_7B.size_bytes(layers=0)
    return max(1, min(layers, (free_bytes - rest_bytes) // (LLAMA_2_7B.size_bytes(layers=1) - rest_bytes)))


def _measure(work: Path, cases: Sequence[str], passes: int) -> list[Result]:
    source = work / "source"
    size = sum(file.stat().st_size for file in source.glob("*.safetensors"))
    ways = [partial(_copy, source, work / "out"), *(partial(_convert, source, work / "out", CASES[c]) for c in cases)]
    rounds = in_turn(ways, passes)
    return [_result(case, size, rounds, index) for index, case in enumerate(["cp", *cases])]


def _result(case: str, size: int, rounds: Sequence[Sequence[tuple[float, int]]], index: int) -> Result:
    took_s = median(one[index][0] for one in rounds)
    of_cp = median(one[0][0] / one[index][0] for one in rounds)
    return Result(case, size, took_s, size / took_s, of_cp, max(one[index][1] for one in rounds))


def _copy(source: Path, out: Path) -> tuple[float, int]:
    _clear(out)
    started = time.perf_counter()
    subprocess.run(["cp", "-r", source, out], check=True)
    return time.perf_counter() - started, 0


def _convert(source: Path, out: Path, options: Mapping[str, object]) -> tuple[float, int]:
    _clear(out)
    command = [sys.executable, "-c", _CHILD, str(source), str(out), json.dumps(options)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    took_s, peak_bytes = json.loads(done.stdout)
    return took_s, peak_bytes


def _clear(out: Path) -> None:
    """Begin each pass alike: nothing there, and nothing that the disk still has to write."""
    shutil.rmtree(out, ignore_errors=True)
    os.sync()


def _line(result: Result) -> str:
    memory = f", peak {result.peak_bytes / 2**20:.0f} MiB" if result.peak_bytes else ""
    speed = f"{result.bytes_per_s / 1e9:.2f} GB/s, {result.of_cp:.0%} of cp"
    return f"{result.case:9} {result.source_bytes / 1e9:.2f} GB in {result.took_s:.2f} s: {speed}{memory}"


if __name__ == "__main__":
    sys.exit(main())
