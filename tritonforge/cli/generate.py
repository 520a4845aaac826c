"""`tritonforge generate`: ask a model for one answer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import click

from tritonforge.cli.connection import server_options
from tritonforge.cli.output import json_option, print_json, say
from tritonforge.client import Chunk, Client, Completion, GenerateOptions
from tritonforge.client.follow import follow

R = TypeVar("R")


def sampling_options(command: Callable[..., R]) -> Callable[..., R]:
    """Adds the options of a generate request; the command gets those that were given as `options`."""

    @click.option("--max-tokens", type=int, help="Largest number of new tokens.")
    @click.option("--min-length", type=int, help="Smallest number of new tokens.")
    @click.option("--temperature", type=float, help="0 always takes the likeliest token; higher is more random.")
    @click.option("--top-k", type=int, help="Sample from this many of the likeliest tokens.")
    @click.option("--top-p", type=float, help="Sample from the likeliest tokens that together have this probability.")
    @click.option("--repetition-penalty", type=float, help="Above 1: tokens that have occurred become less likely.")
    @click.option("--presence-penalty", type=float, help="Taken off the logit of tokens that have occurred.")
    @click.option("--frequency-penalty", type=float, help="Taken off a token's logit for each time it has occurred.")
    @click.option("--seed", "random_seed", type=int, help="Seed of the sampling: the same seed gives the same answer.")
    @click.option("--stop", "stop_words", multiple=True, help="Text that ends the answer; can be repeated.")
    @click.option("--bad", "bad_words", multiple=True, help="Text that must not occur in the answer; can be repeated.")
    @click.option("--version", type=int, help="Engine version that answers; without it the traffic weights decide.")
    @click.option("--sticky-key", help="Requests with the same key are answered by the same version.")
    @functools.wraps(command)
    def with_options(*args: object, **given: object) -> R:
        options = {name: given.pop(name) for name in GenerateOptions.__annotations__ if name in given}
        return command(*args, options={name: value for name, value in options.items() if value is not None}, **given)

    return with_options


@click.command()
@click.argument("model")
@click.argument("prompt")
@click.option("--chat", is_flag=True, help="Take PROMPT as a user's message and use the model's chat template.")
@click.option("--stream", is_flag=True, help="Print the answer as it comes.")
@sampling_options
@server_options(default_timeout_s=120.0)
@json_option
def command(
    client: Client, model: str, prompt: str, *, chat: bool, stream: bool, as_json: bool, options: GenerateOptions
) -> None:
    """Ask MODEL to continue PROMPT, or to answer it with --chat."""
    messages = [{"role": "user", "content": prompt}] if chat else None
    text = None if chat else prompt
    if stream:
        on_chunk = None if as_json else _print_chunk
        answer = follow(client.stream(model, text, messages=messages, **options), on_chunk=on_chunk)
    else:
        answer = client.generate(model, text, messages=messages, **options)
    if as_json:
        print_json(answer)
        return
    click.echo("" if stream else answer.text)
    say(summary(answer))


def summary(answer: Completion) -> str:
    """One line about an answer: how it ended, by which version, how many tokens, how quickly."""
    parts = [
        answer.finish_reason,
        None if answer.engine_version is None else f"version {answer.engine_version}",
        None if answer.completion_tokens is None else f"{answer.prompt_tokens} + {answer.completion_tokens} tokens",
        f"first text {answer.ttft_ms:.0f} ms",
        f"total {answer.total_ms:.0f} ms",
    ]
    return " · ".join(part for part in parts if part)


def _print_chunk(chunk: Chunk) -> None:
    click.echo(chunk.text, nl=False)
