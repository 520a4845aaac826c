import subprocess
import sys

FORBIDDEN = ("pydantic", "yaml", "jinja2", "rich", "click", "tokenizers", "openvino")
LIMIT_S = 0.4
# Processor time and the best of a few tries: the machine may be busy with other things.
TRIES = 3


def run(program: str) -> str:
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return finished.stdout


def test_the_client_loads_nothing_of_the_forge():
    loaded = set(run("import sys, tritonforge.client; print(*sys.modules)").split())
    assert not loaded & set(FORBIDDEN)
    ours = {name.split(".")[1] for name in loaded if name.startswith("tritonforge.")}
    assert ours == {"client", "errors"}


def test_a_client_of_either_protocol_loads_nothing_of_the_forge():
    for url in ("localhost:1", "http://localhost:1"):
        loaded = set(run(f"import sys, tritonforge.client as c; c.Client({url!r}); print(*sys.modules)").split())
        assert not loaded & set(FORBIDDEN)


def test_importing_the_client_is_quick():
    program = "import time; s = time.process_time(); import tritonforge.client; print(time.process_time() - s)"
    assert min(float(run(program)) for _ in range(TRIES)) < LIMIT_S
