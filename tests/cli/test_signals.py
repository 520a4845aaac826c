import os
import signal
import threading

import pytest

from tritonforge.cli.main import run
from tritonforge.cli.signals import StopRequested, raise_when_stopped, until_stopped


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_stop_is_an_exception(number: signal.Signals):
    with pytest.raises(StopRequested) as caught, raise_when_stopped():
        os.kill(os.getpid(), number)
    assert caught.value.number == number
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_server_ends_ordinarily():
    cleaned = []
    with until_stopped():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            cleaned.append(1)
    assert cleaned == [1]


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raise_when_stopped():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_run_undisturbed():
    done = []

    def block() -> None:
        with raise_when_stopped():
            done.append(1)

    thread = threading.Thread(target=block)
    thread.start()
    thread.join(10)
    assert done == [1]


def test_a_stopped_command_says_so_and_exits_as_a_shell_expects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("tritonforge.cli.schema.command.callback", lambda **_: os.kill(os.getpid(), signal.SIGTERM))

    assert run(["schema"]) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "stopped\n"
