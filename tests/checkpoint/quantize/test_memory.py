"""A job takes no more memory than it says, which is what conversions divide their budget by."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.activation_ranges import write_ranges
from tests.support.checkpoints import write_llama
from tritonforge.checkpoint.jobs import Job
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant
from tritonforge.checkpoint.plan import plan_jobs, target_config
from tritonforge.checkpoint.source import open_checkpoint

OPTIONS = [
    ConvertOptions(precision="int8_smoothquant"),
    ConvertOptions(precision="int8_smoothquant", dtype="float32", smoothquant=SmoothQuant(0.5, False, False)),
    ConvertOptions(precision="fp8"),
    ConvertOptions(precision="int4_awq"),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    source = write_llama(
        folder / "hf", hidden=1024, intermediate=4096, heads=8, kv_heads=8, layers=1, dtype="BF16", tokenizer=None
    )
    write_ranges(source, folder / "ranges.safetensors")
    return source


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: f"{options.precision}-{options.dtype}")
def test_a_job_takes_no_more_memory_than_it_says(source: Path, options: ConvertOptions) -> None:
    chosen = replace(options, activation_ranges=source.with_name("ranges.safetensors"))
    checkpoint = open_checkpoint(source)
    jobs = plan_jobs(checkpoint, target_config(checkpoint, chosen), chosen)
    largest = 0
    for job in jobs:
        if isinstance(job, Job):
            tracemalloc.start()
            job.make()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak <= job.working_bytes + 65536, [tensor.name for tensor in job.tensors]
            largest = max(largest, peak)
    assert largest > 4 << 20  # there was something to measure
