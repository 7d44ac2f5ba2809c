"""The commands, and what every one of them does about errors.

Exit codes: 0 fine, 1 a check failed, 2 bad usage or input with one sentence on stderr, 75 something
outside was not there in time, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from hustings._version import __version__
from hustings.cli import (
    BAD_INPUT,
    INTERRUPTED,
    PipeClosed,
    Unwritable,
    discard,
    ending_at_once,
    missing_package,
)
from hustings.core.errors import BadInput, UnknownName, printable

FINE, FAILED = 0, 1

# In the order in which a new user needs them. Each is `module:name`, loaded when the command is
# used: `hustings leader` loads nothing that only `hustings sim` needs.
COMMANDS = {
    "Elect leaders": (
        "hustings.cli.demo:demo",
        "hustings.cli.run:run",
        "hustings.cli.agent:agent",
        "hustings.cli.guards:guards",
        "hustings.cli.keygen:keygen",
    ),
    "Ask an agent": (
        "hustings.cli.clients:leader",
        "hustings.cli.clients:members",
        "hustings.cli.clients:observe",
        "hustings.cli.clients:elect",
        "hustings.cli.clients:resign",
        "hustings.cli.clients:transfer",
    ),
    "Measure a group": ("hustings.cli.measure:measure",),
    "Study elections": (
        "hustings.cli.protocols:protocols",
        "hustings.cli.sim:sim",
        "hustings.cli.sweep:sweep",
        "hustings.cli.compare:compare",
        "hustings.cli.theory:theory",
        "hustings.cli.figure:figure",
        "hustings.cli.trace:trace",
        "hustings.cli.plan:plan",
        "hustings.cli.adversaries:adversaries",
    ),
    "Look for errors": ("hustings.cli.swarm:swarm", "hustings.cli.check:check"),
}


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
        if args and not args[0].startswith("-") and args[0] not in _PLACES:
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load(cmd_name) if cmd_name in _PLACES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS.items():
            loaded = [load(place.partition(":")[2]) for place in section]
            rows = [(str(each.name), each.get_short_help_str(120)) for each in loaded]
            with formatter.section(title):
                formatter.write_dl(rows)


_PLACES = {place.partition(":")[2]: place for section in COMMANDS.values() for place in section}


def load(name: str) -> click.Command:
    """The command of that name; Ctrl-C while its module loads ends the process at once."""
    module, _, name = _PLACES[name].partition(":")
    with ending_at_once():
        try:
            command = getattr(import_module(module), name)
        except ModuleNotFoundError as missing:
            raise BadInput(missing_package(missing)) from None
    assert isinstance(command, click.Command)
    return command


_VERSION_HELP = "Show the version, with --json all versions that a report needs, and exit."


def _version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    if ctx.params.get("as_json"):
        with ending_at_once():
            from hustings.about import about
            from hustings.cli.output import show_json
        show_json(about())
    else:
        click.echo(f"hustings, version {__version__}")
    ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try first: hustings demo. Then: hustings sim bully -n 8 --scenario leader-crash",
)
@click.option("--version", is_flag=True, expose_value=False, callback=_version, help=_VERSION_HELP)
@click.option("--json", "as_json", is_flag=True, is_eager=True, help="With --version: as JSON.")
def hustings(as_json: bool) -> None:
    """Leader election for groups of any size: run it, simulate it, compare it, draw it.

    Every command takes --help. With --json, stdout has one JSON object and nothing else.
    """
    if as_json:
        raise BadInput("--json goes with --version, or after the command: hustings sim --json ...")


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        result = hustings.main(arguments, prog_name="hustings", standalone_mode=False)
    except BadInput as error:
        return _say(str(error), error.exit_code)
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


def _say(sentence: str, code: int = BAD_INPUT) -> int:
    with suppress(OSError):  # where no message can be written, the exit code remains
        click.echo(f"hustings: {printable(' '.join(sentence.split()))}", err=True)
    return code
