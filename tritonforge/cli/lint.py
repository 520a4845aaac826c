"""`tritonforge lint`: what is wrong with a model repository, found without a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from tritonforge.cli.output import json_option, print_json, print_line
from tritonforge.cli.printable import printable
from tritonforge.repository.lint import Finding, Severity, explanation_of, lint

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


@click.command()
@click.argument("repository", type=click.Path(path_type=Path), required=False)
@click.option("--explain", metavar="CODE", help="Say why a rule exists, instead of checking a repository.")
@json_option
def command(*, repository: Path | None, explain: str | None, as_json: bool) -> None:
    """Check the model repository REPOSITORY, written by tritonforge or by hand.

    The exit code is 1 when there are errors.
    """
    if explain is not None:
        click.echo(explanation_of(explain))
        return
    if repository is None:
        raise click.UsageError("give the REPOSITORY to check, or --explain CODE")
    findings = lint(repository)
    if as_json:
        print_json({"repository": repository, "findings": findings})
    else:
        _print(findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise click.exceptions.Exit(1)


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        place = f"{finding.path}:{finding.line}" if finding.line is not None else str(finding.path)
        severity = click.style(finding.severity.value, fg=COLOURS[finding.severity])
        click.echo(f"{printable(place)}: {severity}: {printable(finding.message)} [{finding.code}]")
        print_line(f"    fix: {finding.fix}")
    counts = Counter(finding.severity for finding in findings)
    click.echo(", ".join(f"{severity.value}: {counts[severity]}" for severity in Severity))
