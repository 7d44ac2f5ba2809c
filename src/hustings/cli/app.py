"""The commands, and what every one of them does about errors.

Exit codes: 0 fine, 1 a check failed, 2 bad usage or input with one sentence on stderr, 130 stopped
by Ctrl-C.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from hustings._version import __version__
from hustings.cli import BAD_INPUT, INTERRUPTED, PipeClosed, Unwritable, discard
from hustings.cli.adversaries import adversaries
from hustings.cli.agent import agent
from hustings.cli.check import check
from hustings.cli.clients import elect, leader, members, observe, resign, transfer
from hustings.cli.compare import compare
from hustings.cli.demo import demo
from hustings.cli.figure import figure
from hustings.cli.guards import guards
from hustings.cli.keygen import keygen
from hustings.cli.plan import plan
from hustings.cli.protocols import protocols
from hustings.cli.run import run as run_command
from hustings.cli.sim import sim
from hustings.cli.swarm import swarm
from hustings.cli.sweep import sweep
from hustings.cli.theory import theory
from hustings.cli.trace import trace
from hustings.core.errors import BadInput, UnknownName, printable

FINE, FAILED = 0, 1


class Interrupted(Exception):
    """Ctrl-C, kept apart from click's own handling of it."""


class Commands(click.Group):
    """A group of commands that suggests a name for an unknown command."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None  # click would print an empty line before our one line

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which a new user needs them

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS.items():
            rows = [(str(each.name), each.get_short_help_str(120)) for each in section]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try first: hustings demo. Then: hustings sim bully -n 8 --scenario leader-crash",
)
@click.version_option(__version__, prog_name="hustings")
def hustings() -> None:
    """Leader election for groups of any size: run it, simulate it, compare it, draw it.

    Every command takes --help. With --json, stdout has one JSON object and nothing else.
    """


COMMANDS = {
    "Elect leaders": (demo, run_command, agent, guards, keygen),
    "Ask an agent": (leader, members, observe, elect, resign, transfer),
    "Study elections": (
        protocols,
        sim,
        sweep,
        compare,
        theory,
        figure,
        trace,
        plan,
        adversaries,
    ),
    "Look for errors": (swarm, check),
}
for section in COMMANDS.values():
    for command in section:
        hustings.add_command(command)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        result = hustings.main(arguments, prog_name="hustings", standalone_mode=False)
    except BadInput as error:
        return _say(str(error))
    except NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return FINE
    except click.ClickException as error:
        return _say(error.format_message())
    except (Interrupted, click.Abort, KeyboardInterrupt):
        if sys.stderr.isatty():
            click.echo(err=True)  # the terminal has printed ^C
        _say("interrupted")
        return INTERRUPTED
    except Unwritable as error:
        discard(sys.stdout)
        return _say(f"cannot write to standard output: {error}")
    except PipeClosed:
        discard(sys.stdout)
        return FINE
    return result if isinstance(result, int) else FINE


def _say(sentence: str) -> int:
    with suppress(OSError):  # where no message can be written, the exit code remains
        click.echo(f"hustings: {printable(' '.join(sentence.split()))}", err=True)
    return BAD_INPUT
