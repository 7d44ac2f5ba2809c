"""`hustings leader`, `members`, `observe`, `elect`, `resign`, `transfer`: questions to an agent.

Exit codes: 0 a leader is known, 3 there is none, 1 a transfer that failed, 2 bad usage or no agent
that answers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hustings.cli.options import WholeRange
from hustings.cli.output import show_json, show_table, warn
from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput

if TYPE_CHECKING:
    from hustings.agent.client import AgentClient

DEFAULT = "http://127.0.0.1:7401"
FINE, FAILED, NONE = 0, 1, 3
NOT_IN_TIME = 504  # an order was begun, and did not end in time
_POLL_S = 0.05
_BACKOFF_S = (0.2, 5.0)  # between attempts to listen again: first, longest

Json = dict[str, Any]
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asking:
    """The common options of these commands."""

    agent: AgentClient
    group: str
    timeout_s: float


def _client(agent: str, token_file: Path | None, timeout: str) -> tuple[AgentClient, float]:
    from hustings.agent.access import read_token
    from hustings.agent.client import AgentClient

    timeout_s = parse_duration(timeout, "--timeout")
    if not 0 < timeout_s <= 3600:
        raise BadInput("--timeout must be longer than nothing, and an hour at most")
    text = os.environ.get("HUSTINGS_HTTP_TOKEN") or None
    token = read_token(token_file, text, "HUSTINGS_HTTP_TOKEN")
    return AgentClient(agent, token, timeout_s), timeout_s


def _asking(agent: str, group: str | None, token_file: Path | None, timeout: str) -> Asking:
    client, timeout_s = _client(agent, token_file, timeout)
    return Asking(client, client.group(group), timeout_s)


def questions(command: Command) -> Command:
    """The options of every command that asks an agent."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
        click.option(
            "--timeout",
            default="10s",
            show_default=True,
            metavar="DURATION",
            envvar="HUSTINGS_TIMEOUT",
            help="How long to wait.",
        ),
        click.option(
            "--group",
            metavar="NAME",
            envvar="HUSTINGS_GROUP",
            help="The group; needed only if the agent has several.",
        ),
        click.option(
            "--agent",
            default=DEFAULT,
            show_default=True,
            metavar="URL",
            envvar="HUSTINGS_AGENT",
            help="The agent to ask.",
        ),
    ):
        command = option(command)
    return command


def orders(command: Command) -> Command:
    """The options of every command that gives an agent an order."""
    token = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        envvar="HUSTINGS_TOKEN_FILE",
        help="The file with the agent's token; HUSTINGS_HTTP_TOKEN may hold the token itself.",
    )
    return questions(token(command))


@click.command()
@questions
def leader(agent: str, group: str | None, timeout: str, as_json: bool) -> int:
    """Show the leader. Exit code 0 if there is one, 3 if there is none.

    \b
    hustings leader
    hustings leader --group billing --json
    """
    asking = _asking(agent, group, None, timeout)
    state = asking.agent.leader(asking.group)
    return _show(state, as_json)


@click.command()
@questions
def members(agent: str, group: str | None, timeout: str, as_json: bool) -> int:
    """Show the members of the group that the agent's member knows.

    Exits with 3 if none of them leads.

    \b
    hustings members
    hustings members --group billing --json
    """
    asking = _asking(agent, group, None, timeout)
    everybody = asking.agent.members(asking.group)
    if as_json:
        show_json({"group": asking.group, "members": everybody})
    else:
        columns = ["name", "address", "role", "attributes", "incarnation"]
        rows = [
            [
                each["name"] + (" (this agent's)" if each["me"] else ""),
                each["address"],
                _role(each),
                ", ".join(f"{key}={value:g}" for key, value in sorted(each["attributes"].items())),
                each["incarnation"],
            ]
            for each in everybody
        ]
        show_table(
            f"{asking.group}: {len(everybody)} member{'s' * (len(everybody) != 1)}", columns, rows
        )
    return FINE if any(each["leader"] for each in everybody) else NONE


@click.command()
@click.option("--count", type=WholeRange(min=1), help="End after this number of lines.")
@questions
def observe(agent: str, group: str | None, timeout: str, count: int | None, as_json: bool) -> int:
    """Print a line for each change of leadership, until Ctrl-C; without --group, of all groups.

    The present state comes first. With --json, each line is one JSON object. If the agent stops,
    the command asks again until the agent is back.

    \b
    hustings observe
    hustings observe --group billing --json
    """
    client, _ = _client(agent, None, timeout)
    if group is not None:
        client.group(group)
    state: Json = {}
    for number, state in enumerate(_changes(client, group), 1):
        if as_json:
            click.echo(json.dumps(state))
        else:
            click.echo(f"{state['time']} {state['group']}: {_told(state)}")
        if number == count:
            break
    return FINE if state.get("leader") is not None else NONE


@click.command()
@orders
def elect(
    agent: str, group: str | None, token_file: Path | None, timeout: str, as_json: bool
) -> int:
    """Call an election, and show the leader that it elects.

    \b
    hustings elect --token-file agent.token
    """
    asking = _asking(agent, group, token_file, timeout)
    asking.agent.order(asking.group, "elect")
    return _show(_settled(asking), as_json)


@click.command()
@click.option("--undo", is_flag=True, help="Take an earlier resignation back.")
@orders
def resign(
    agent: str,
    group: str | None,
    token_file: Path | None,
    timeout: str,
    undo: bool,
    as_json: bool,
) -> int:
    """Make the agent's member resign, and show the next leader.

    After that it leads only if there is no other member, until --undo or a restart.

    \b
    hustings resign --token-file agent.token
    hustings resign --undo --token-file agent.token
    """
    asking = _asking(agent, group, token_file, timeout)
    asking.agent.order(asking.group, "stand" if undo else "resign")
    return _show(_settled(asking), as_json)


@click.command()
@click.argument("name")
@click.option(
    "--drain",
    metavar="DURATION",
    help="How long the work of the leader may take to finish.",
)
@orders
def transfer(
    agent: str,
    group: str | None,
    token_file: Path | None,
    timeout: str,
    name: str,
    drain: str | None,
    as_json: bool,
) -> int:
    """Transfer leadership to the member NAME; only the leader's agent can do that.

    \b
    hustings transfer web-2 --token-file agent.token
    hustings transfer web-2 --drain 5s --token-file agent.token
    """
    more_s = 0.0 if drain is None else parse_duration(drain, "--drain")
    asking = _asking(agent, group, token_file, timeout)
    body: Json = {"to": name} if drain is None else {"to": name, "drain": more_s}
    from hustings.agent.client import Refusal

    try:
        asking.agent.order(asking.group, "transfer", body, more_s)
    except Refusal as error:
        if error.status != NOT_IN_TIME:
            raise
        warn(str(error))
        return FAILED
    state = _settled(asking, name)
    code = _show(state, as_json)
    if code == FINE and state["leader"]["name"] != name:
        warn(f"{name} was asked to lead and does not")
        return FAILED
    return code


def _settled(asking: Asking, name: str | None = None) -> Json:
    """The state once there is a leader, or the named leader, or the time is over."""
    deadline = time.monotonic() + asking.timeout_s
    while True:
        state = asking.agent.leader(asking.group)
        found = state["leader"]
        if found is not None and name in (None, found["name"]):
            return state
        if time.monotonic() >= deadline:
            return state
        time.sleep(_POLL_S)


def _changes(client: AgentClient, group: str | None) -> Iterator[Json]:
    """Every change, also after an interruption; a state that is already known is not repeated."""
    from hustings.agent.client import NoAnswer, Refusal

    last: dict[str, Json] = {}
    pause, heard = _BACKOFF_S[0], False
    while True:
        try:
            for state in client.events(group):
                if not heard:
                    pause, heard = _BACKOFF_S[0], True
                news = {key: value for key, value in state.items() if key != "time"}
                if last.get(state["group"]) != news:
                    last[state["group"]] = news
                    yield state
            why = "it ended the stream"
        except (NoAnswer, Refusal) as error:
            if not last:
                raise
            why = str(error)
        if heard:
            warn(f"{why}; asking again until {client.url} answers")
        heard = False
        time.sleep(pause)
        pause = min(2 * pause, _BACKOFF_S[1])


def _show(state: Json, as_json: bool) -> int:
    if as_json:
        show_json(state)
    else:
        click.echo(f"{state['group']}: {_told(state)}")
    return NONE if state["leader"] is None else FINE


def _told(state: Json) -> str:
    if state["leader"] is None:
        return f"no leader: {state['reason'] or 'no reason known'}"
    leaders = state["leaders"] or [state["leader"]]
    who = ", ".join(f"{each['name']} ({each['address'] or 'unknown address'})" for each in leaders)
    return f"{who} {'lead' if len(leaders) > 1 else 'leads'} in term {state['term']}"


def _role(member: Json) -> str:
    return "leader" if member["leader"] else "observer" if member["observer"] else "member"
