"""The `tritonforge` command: a lazy group, one error handler, nothing else."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from collections.abc import Sequence

import click

from tritonforge import __version__
from tritonforge.cli.printable import printable
from tritonforge.cli.signals import StopRequested, raise_when_stopped
from tritonforge.errors import TritonforgeError, did_you_mean

# Command name → (module in tritonforge.cli, one-line help). The module is imported only when its command is chosen or
# described, so that `tritonforge --help` stays quick.
COMMANDS = {
    "inspect": ("inspect", "Say what a checkpoint is and whether it is supported."),
    "convert": ("convert", "Convert a checkpoint to the TensorRT-LLM checkpoint format."),
    "build": ("build", "Convert, compile, render, lint and publish what forge.yaml asks for."),
    "lint": ("lint", "Check a model repository without a server."),
    "serve": ("serve", "Run Triton on a model repository."),
    "status": ("status", "Show the models of a running server."),
    "load": ("load", "Load a model on a running server."),
    "unload": ("unload", "Unload a model from a running server."),
    "traffic": ("traffic", "Show or change how a model's traffic is split between its versions."),
    "generate": ("generate", "Ask a model for one answer."),
    "import-gguf": ("import_gguf", "Turn a Llama GGUF file into a Hugging Face checkpoint folder."),
    "releases": ("releases", "List the known TensorRT-LLM releases, or what is known of one."),
    "schema": ("schema", "Print the JSON Schema of forge.yaml."),
    "doctor": ("doctor", "Check what this machine can do and say how to fix the rest."),
}
EXIT_INTERRUPTED = 130
EXIT_SIGNAL = 128  # and the number of the signal, as a shell has it
EXIT_BUG = 70


class LazyGroup(click.Group):
    """A click group whose commands live in modules that are imported when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All command names, in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            hint = did_you_mean(cmd_name, list(COMMANDS))
            ctx.fail(f"no such command {cmd_name!r}" + (f"; {hint}" if hint else ""))
        module = importlib.import_module(f"tritonforge.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The command list of `--help`, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tritonforge")
def group() -> None:
    """From a Hugging Face checkpoint to a Triton server that answers, and on to its next version."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(argv))


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Every error goes to standard error, in one place."""
    try:
        with raise_when_stopped():
            code = group.main(args=None if argv is None else list(argv), prog_name="tritonforge", standalone_mode=False)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)  # the usage, and the message with what was typed
        click.echo(_lines(shown.getvalue()), err=True, nl=False)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except StopRequested as stop:
        click.echo("stopped", err=True)
        return EXIT_SIGNAL + stop.number
    except click.exceptions.Exit as done:
        return done.exit_code
    except TritonforgeError as error:
        show_error(error)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing to say, and nobody to say it to
        return 1
    except Exception:  # noqa: BLE001 - the last line of defence: what was not raised on purpose is our bug
        traceback.print_exc()
        click.echo("this is a bug in tritonforge", err=True)
        return EXIT_BUG
    return code if isinstance(code, int) else 0  # what a command gave to ctx.exit comes back as the result


def show_error(error: TritonforgeError) -> None:
    """Print an error and its hint on standard error."""
    click.echo(f"{click.style('error:', fg='red', bold=True)} {_lines(error.message)}", err=True)
    if error.hint:
        click.echo(f"{click.style('hint:', fg='cyan')} {_lines(error.hint)}", err=True)


def _lines(message: str) -> str:
    return printable(message, kept="\n")
