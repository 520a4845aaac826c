import os
import subprocess
import sys

import pytest

from tritonforge.launch.owner import is_orphan, owner_label


def test_a_living_owner_keeps_its_container():
    assert not is_orphan(owner_label())


def test_a_dead_owner_leaves_an_orphan():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        label = owner_label(child.pid)
        assert not is_orphan(label)
        child.kill()
    assert is_orphan(label)


def test_a_process_id_that_is_used_again_is_another_owner():
    boot, namespace, pid, started = owner_label().split(":")

    assert is_orphan(f"{boot}:{namespace}:{pid}:{int(started) - 1}")


@pytest.mark.parametrize("changed", [0, 1])
def test_owners_elsewhere_are_not_ours_to_judge(changed: int):
    parts = owner_label(os.getpid()).split(":")
    parts[changed] = "elsewhere"
    parts[3] = "1"

    assert not is_orphan(":".join(parts))


@pytest.mark.parametrize("label", ["", "x", "a:b:c", "a:b:c:d", "::::", f"{owner_label().rpartition(':')[0]}x:1"])
def test_labels_that_are_none_of_ours_are_left_alone(label: str):
    assert not is_orphan(label)
