"""The peak of resident memory of a conversion, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_CHILD = """
import json, sys
from pathlib import Path
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
convert(Path(sys.argv[1]), Path(sys.argv[2]), ConvertOptions(**json.loads(sys.argv[3])))
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")).split()[1])
"""


def peak_of_conversion(source: Path, out: Path, options: dict[str, Any], *, timeout_s: float = 250) -> int:
    """Convert, and return the peak in bytes; mapped pages of files count."""
    command = [sys.executable, "-c", _CHILD, str(source), str(out), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) * 1024
