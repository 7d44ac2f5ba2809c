"""`hustings run`: a command that runs only on the member that leads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hustings.cli.options import WholeRange, needs_agent_extra
from hustings.core.config import finite_number, parse_settings
from hustings.core.errors import BadInput

if TYPE_CHECKING:
    from hustings.agent.command import CommandSpec
    from hustings.agent.hooks import Hooks
    from hustings.agent.logs import EventLog
    from hustings.agent.service import HttpService
    from hustings.joining import Joining
    from hustings.net.restarts import RestartPolicy

    Answering = Callable[[str, EventLog], HttpService]

LOGS = ("text", "json")
RESTARTS = ("never", "on-failure", "always")


@click.command()
@click.argument("group")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--join",
    "seeds",
    multiple=True,
    metavar="HOST:PORT",
    help="The address of a member on another machine; may be given several times. [default: none]",
)
@click.option(
    "--no-local",
    is_flag=True,
    help="Do not look for this user's members on this machine. [default: they find each other]",
)
@click.option(
    "--expect",
    type=WholeRange(min=1),
    metavar="N",
    help="The number of members, this one included, that must be in touch before one leads for the "
    "first time; 1: it may lead alone. [default: 2 with --join, else 1]",
)
@click.option(
    "--alone",
    metavar="TIME",
    help="Lead with fewer, even alone, after this time; yes: at once; no: never, without --join "
    "either. [default: no with --join]",
)
@click.option(
    "--name",
    metavar="NAME",
    help="This member's name, unique in the group. [default: a random one]",
)
@click.option(
    "--bind",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="The address to listen at.",
)
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    help="The address at which others reach this member, if it differs.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A key file of hustings keygen. The first key seals; further keys only open.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Use no key: a process that reaches this member can then decide which member leads.",
)
@click.option(
    "--protocol",
    default="le-s",
    show_default=True,
    metavar="NAME",
    help="A name from hustings protocols, module:Class, or file.py:Class.",
)
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting of the protocol."
)
@click.option(
    "--choice",
    default="highest-id",
    show_default=True,
    metavar="CHOICE",
    help="Which member is best.",
)
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A number that --choice ranks by, or that a setting names.",
)
@click.option(
    "--multicast",
    default="fan-out",
    show_default=True,
    metavar="HOW",
    help="fan-out, bimodal, gossip or ip:GROUP:PORT.",
)
@click.option(
    "--detector",
    default="accrual",
    show_default=True,
    metavar="NAME",
    help="accrual, heartbeat, or file.py:Class.",
)
@click.option(
    "--detector-set",
    "detecting",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the detector.",
)
@click.option(
    "--gossip-set",
    "gossiping",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of membership and multicast, such as T_gossip=5s.",
)
@click.option(
    "--leadership-set",
    "leading",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the leadership layer.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="KEY=VALUE",
    help="How much this member takes from others, such as members=6000.",
)
@click.option(
    "--preempt",
    is_flag=True,
    help="A better member that joins or returns displaces the leader, as in the protocol's paper; "
    "see hustings protocols NAME. [default: the leader stays]",
)
@click.option(
    "--preempt-after",
    metavar="TIME",
    help="A better member takes over from the leader when it has been up for this time. "
    "[default: never]",
)
@click.option(
    "--stall-bound",
    metavar="TIME",
    help="If a leader stands still for longer than this, its command ends. It leads again when no "
    "other member has taken its place. [default: 650ms with le-s, see the guide]",
)
@click.option(
    "--measure",
    metavar="WHAT",
    help="Members measure how well they hear each other, by loss or delay, and --choice "
    "lowest:loss or lowest:delay ranks by it; with --preempt the best connected member leads.",
)
@click.option(
    "--state",
    metavar="DIR",
    help="The state directory, in which terms survive restarts. Created if it is missing.",
)
@click.option(
    "--guard",
    metavar="URL",
    help="What grants leases, so that there are never two leaders: quorum://a,b,c, "
    "etcd://HOST:PORT, postgres://, redis://, zookeeper://, nats://; hustings guards lists all. "
    "[default: none]",
)
@click.option(
    "--ttl",
    metavar="TIME",
    help="The length of a lease, and how long the group waits for a dead leader. "
    "[default: 5s, at least twice the grace and 3s: 13s with a grace of 5s; more with --on-lose]",
)
@click.option(
    "--guard-wait",
    metavar="TIME",
    help="How long a guard that does not answer is tried at the start, before hustings run exits "
    "with 75. [default: 1m]",
)
@click.option(
    "--grace",
    default="5s",
    show_default=True,
    metavar="TIME",
    help="The time from SIGTERM to SIGKILL.",
)
@click.option(
    "--restart",
    type=click.Choice(RESTARTS),
    default="never",
    show_default=True,
    help="When to start the command again after it ended by itself.",
)
@click.option(
    "--restart-delay",
    default="1s",
    show_default=True,
    metavar="TIME",
    help="The wait before the first restart. It doubles with each restart, up to a minute.",
)
@click.option(
    "--max-restarts",
    type=WholeRange(min=0),
    metavar="N",
    help="The largest number of restarts in a row; a run of a minute starts the count again. "
    "[default: no limit]",
)
@click.option(
    "--once",
    is_flag=True,
    help="The command has to succeed once in the group: when it has ended with 0, the success is "
    "recorded, and all members leave with 0. The name of the group names the work.",
)
@click.option(
    "--on-lead",
    metavar="COMMAND",
    help="A line for the shell that runs before the command, once in each term. If it fails, the "
    "command is not started.",
)
@click.option(
    "--on-lose",
    metavar="COMMAND",
    help="A line for the shell that runs when leadership is over and the command is gone.",
)
@click.option(
    "--hook-timeout",
    default="5s",
    show_default=True,
    metavar="TIME",
    help="The longest time that --on-lead and --on-lose may take.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Answer over HTTP, as an agent does: /healthz, /readyz, /metrics, /v1/events and more. "
    "[default: no HTTP]",
)
@click.option(
    "--http-name",
    "http_names",
    multiple=True,
    metavar="NAME",
    help="A host name in HTTP requests, in addition to this machine's.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The token that orders over HTTP need, and any HTTP on other addresses than loopback.",
)
@click.option(
    "--log",
    "--log-format",
    "log_format",
    type=click.Choice(LOGS),
    default="text",
    show_default=True,
    help="The form of the lines on stderr; with json each line is an object.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.option("-v", "--verbose", is_flag=True, help="Also print when another member leads.")
def run(
    group: str,
    command: tuple[str, ...],
    no_local: bool,
    keys: tuple[Path, ...],
    pairs: tuple[str, ...],
    attributes: tuple[str, ...],
    detecting: tuple[str, ...],
    gossiping: tuple[str, ...],
    leading: tuple[str, ...],
    limits: tuple[str, ...],
    guard: str | None,
    ttl: str | None,
    guard_wait: str | None,
    grace: str,
    restart: str,
    restart_delay: str,
    max_restarts: int | None,
    once: bool,
    on_lead: str | None,
    on_lose: str | None,
    hook_timeout: str,
    http: str | None,
    http_names: tuple[str, ...],
    token_file: Path | None,
    log_format: str,
    quiet: bool,
    verbose: bool,
    **as_given: Any,  # to `join`
) -> int:
    """Join GROUP and run COMMAND, in a session of its own, only while this member leads.

    The command's environment has HUSTINGS_GROUP, HUSTINGS_TERM, HUSTINGS_MEMBER and HUSTINGS_TOKEN.
    The token is empty without a guard. Other HUSTINGS_* variables may hold secrets and are not
    passed on.

    When leadership is lost, the command and every process that it started get SIGTERM and, after
    the grace, SIGKILL. The same happens when hustings run, or one of its two helper processes, is
    killed or stopped. With a guard all of this is over before another member can lead, so the grace
    is part of --ttl. Without a guard a member that takes over waits until the last leader's command
    is gone: on one machine by a lock, on several by time. When the command ends by itself and is
    not restarted, the member leaves, and another member leads and runs it. With --once that ends
    when the command has ended with 0: all members leave with 0, also those that come later. If a
    member dies just before the others could know of a success, the command runs again.

    SIGTERM and SIGINT go to the command's process group. The command is killed after the grace, and
    the member leaves when nothing of it is left. A second such signal kills the command at once.
    SIGHUP, SIGUSR1 and SIGUSR2 go to the command itself. SIGHUP from a terminal that is closed acts
    like SIGTERM. A signal that was ignored when hustings run started stays ignored, such as SIGINT
    in the background of a script.

    The exit code is that of the command, 128+N if signal N killed it. A member that was not leading
    exits with 0 after SIGTERM and 130 after Ctrl-C. The code is 2 if an option is wrong, and 75 if
    the guard's engine did not answer for --guard-wait: then a later start may succeed.

    \b
    hustings run jobs -- ./worker --fast
    hustings run jobs --key jobs.key --bind 10.0.0.1:7400 --join 10.0.0.2:7400 -- ./worker --fast
    hustings run jobs --guard etcd://127.0.0.1:2379 --grace 2s -- ./worker
    """
    from hustings.joining import join
    from hustings.net.restarts import Restart

    level = _level(quiet, verbose)
    answering = _answering(http, http_names, token_file)
    policy = _policy(restart, restart_delay, max_restarts)
    if once and policy.when is Restart.ALWAYS:
        raise BadInput("--once and --restart always exclude each other: give one of them")
    spec = _spec(command, grace, guard, policy, _hooks(on_lead, on_lose, hook_timeout), once)
    wanted = join(
        group,
        local=not no_local,
        settings=parse_settings(pairs),
        attributes=_attributes(attributes),
        key=keys or None,
        detector_settings=parse_settings(detecting),
        gossip_settings=parse_settings(gossiping),
        leadership_settings=parse_settings(leading),
        limits=parse_settings(limits),
        guard=guard,
        guard_settings=_lease(spec, guard, ttl),
        guard_wait=_guard_wait(guard, guard_wait),
        **as_given,
    )
    return _supervised(wanted, spec, log_format, level, answering)


def _supervised(
    wanted: Joining,
    spec: CommandSpec,
    log_format: str,
    level: str,
    answering: Answering | None,
) -> int:
    from hustings.agent import event_loop
    from hustings.agent.logs import Log, bridged
    from hustings.agent.run import supervise
    from hustings.net.logs import notes_of

    common = {"group": wanted.group, "member": wanted.name}
    with Log(sys.stderr, log_format, level, "hustings", common) as events:
        told = notes_of(wanted.group, lambda sentence: events.warning("notice", sentence))
        try:
            service = None if answering is None else answering(wanted.group, events)
            with bridged(events), told:
                return event_loop.run(supervise(wanted, spec, events, service))
        except BadInput as error:
            if log_format != "json":
                raise
            events.error("failed", str(error), code=error.exit_code)
            return error.exit_code


def _answering(
    http: str | None, names: tuple[str, ...], token_file: Path | None
) -> Answering | None:
    """What makes HTTP, with all that can be checked before checked."""
    if http is None:
        for option, value in (("--http-name", names), ("--token-file", token_file)):
            if value:
                raise BadInput(f"{option} goes with --http")
        return None
    from hustings.agent.config import HTTP_PORT
    from hustings.net.addresses import parse_address

    bind = parse_address(http, "--http", HTTP_PORT)
    with needs_agent_extra("--http"):
        from hustings.agent.service import HttpService, token_for
    token = token_for(token_file, os.environ.get("HUSTINGS_HTTP_TOKEN") or None)

    def made(group: str, events: EventLog) -> HttpService:
        return HttpService(bind, events, token=token, names=names, groups=(group,))

    return made


def _spec(
    command: tuple[str, ...],
    grace: str,
    guard: str | None,
    policy: RestartPolicy,
    hooks: Hooks,
    once: bool,
) -> CommandSpec:
    from hustings.agent.command import CommandSpec, check_command, secrets_of
    from hustings.core.durations import parse_duration

    check_command(command)
    terminal = sys.stdin is not None and sys.stdin.isatty()
    grace_s = parse_duration(grace, "--grace")
    return CommandSpec(
        command,
        grace_s=grace_s,
        restart=policy,
        hangup_ends=terminal,
        secrets=secrets_of(guard),
        hooks=hooks,
        once=once,
    )


def _hooks(on_lead: str | None, on_lose: str | None, timeout: str) -> Hooks:
    from hustings.agent.hooks import Hooks
    from hustings.core.durations import parse_duration

    return Hooks(on_lead, on_lose, parse_duration(timeout, "--hook-timeout"))


def _lease(spec: CommandSpec, guard: str | None, ttl: str | None) -> dict[str, object] | None:
    from hustings.agent.command import lease_for
    from hustings.core.durations import parse_duration

    if guard is None:
        if ttl is not None:
            raise BadInput("--ttl goes with --guard")
        return None
    return lease_for(spec, guard, None if ttl is None else parse_duration(ttl, "--ttl"))


def _guard_wait(guard: str | None, wait: str | None) -> str | float | None:
    from hustings.agent.config import GUARD_WAIT_S

    return GUARD_WAIT_S if guard is not None and wait is None else wait


def _level(quiet: bool, verbose: bool) -> str:
    if quiet and verbose:
        raise BadInput("--quiet and --verbose exclude each other: give one of them")
    return "error" if quiet else "debug" if verbose else "info"


def _policy(when: str, delay: str, most: int | None) -> RestartPolicy:
    from hustings.core.durations import parse_duration
    from hustings.net.restarts import Restart, RestartPolicy

    return RestartPolicy(Restart(when), parse_duration(delay, "--restart-delay"), most)


def _attributes(texts: Iterable[str]) -> dict[str, float]:
    table: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--attribute {text!r} is not understood: write NAME=NUMBER")
        if name.strip() in table:
            raise BadInput(f"--attribute {name.strip()} is given twice")
        table[name.strip()] = finite_number(value, f"attribute {name.strip()}")
    return table
