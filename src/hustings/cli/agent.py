"""`hustings agent`: members that run as a service, and HTTP to ask them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from hustings.cli.options import needs_agent_extra
from hustings.cli.output import warn


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="HUSTINGS_CONFIG",
    metavar="FILE",
    help="The configuration, in TOML. Flags and HUSTINGS_* variables override it.",
)
@click.option(
    "--group", metavar="NAME", help="The group to join, or the only group of the file to run."
)
@click.option("--name", metavar="NAME", help="This member's name, unique in its group.")
@click.option(
    "--join", multiple=True, metavar="HOST:PORT", help="The address of a member of the group."
)
@click.option("--no-local", is_flag=True, help="Do not look for members on this machine.")
@click.option(
    "--expect",
    metavar="N",
    help="Members in touch before one leads first. [default: 2 with --join, else 1]",
)
@click.option(
    "--alone",
    metavar="DURATION",
    help="Lead with fewer after this time; yes, no. [default: no with --join]",
)
@click.option(
    "--protocol", metavar="NAME", help="A name from hustings protocols, or file.py:Class."
)
@click.option("--set", multiple=True, metavar="KEY=VALUE", help="A setting, such as T_A=250ms.")
@click.option("--choice", metavar="RULE", help="Which member is best: highest-id, lowest:load, ...")
@click.option(
    "--attribute", multiple=True, metavar="NAME=NUMBER", help="A number that --choice ranks by."
)
@click.option("--observer", is_flag=True, help="Watch only; never lead.")
@click.option("--multicast", metavar="HOW", help="fan-out, bimodal, gossip or ip:GROUP:PORT.")
@click.option("--detector", metavar="NAME", help="accrual, heartbeat, or file.py:Class.")
@click.option("--preempt", is_flag=True, help="A better member displaces the leader.")
@click.option(
    "--preempt-after",
    metavar="DURATION",
    help="A better member takes over when it has been up for this time. [default: never]",
)
@click.option(
    "--stall-bound",
    metavar="DURATION",
    help="A leader that stood still for longer leads again when no other member has taken its "
    "place. [default: 650ms with le-s, see the guide]",
)
@click.option(
    "--measure", metavar="WHAT", help="What members measure and are ranked by: loss, delay."
)
@click.option("--guard", metavar="URL", help="What grants leases: quorum://a,b,c, etcd://...")
@click.option("--ttl", metavar="DURATION", help="The length of a lease. [default: 5s]")
@click.option(
    "--guard-wait",
    metavar="DURATION",
    help="How long a guard that does not answer is tried at the start. [default: 1m]",
)
@click.option(
    "--on-lead", metavar="COMMAND", help="A line for the shell that runs when the member leads."
)
@click.option(
    "--on-lose",
    metavar="COMMAND",
    help="A line for the shell that runs when the member leads no longer.",
)
@click.option("--hook-timeout", metavar="DURATION", help="The time of each hook. [default: 5s]")
@click.option("--bind", metavar="HOST:PORT", help="Listening address. [default: 127.0.0.1:7400]")
@click.option("--advertise", metavar="HOST:PORT", help="Its address for others, if it differs.")
@click.option("--key", multiple=True, metavar="FILE", help="Key files. The first seals, all open.")
@click.option("--insecure", is_flag=True, help="Use no key: any process can then decide who leads.")
@click.option("--state", metavar="FOLDER", help="The state directory, in which terms survive.")
@click.option("--http", metavar="HOST:PORT", help="Address of HTTP. [default: 127.0.0.1:7401]")
@click.option("--http-name", multiple=True, metavar="NAME", help="A host name in HTTP requests.")
@click.option("--token-file", metavar="FILE", help="The token that orders need.")
@click.option("--event-streams", metavar="N", help="Most listeners of /v1/events. [default: 64]")
@click.option("--log-format", "--log", metavar="FORMAT", help="text or json. [default: text]")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning, error. [default: info]")
@click.option(
    "--shutdown-timeout", metavar="DURATION", help="How long leaving may take. [default: 5s]"
)
@click.option("--check", is_flag=True, help="Check the configuration and stop.")
def agent(config: Path | None, check: bool, **flags: Any) -> int:
    """Run members of one or several groups, and answer over HTTP who leads.

    Flags override environment variables (HUSTINGS_BIND for --bind), and these override the file.
    After SIGTERM the members leave with a farewell. After SIGHUP the agent reads keys, attributes
    and token again. The token may also stand in HUSTINGS_HTTP_TOKEN.

    \b
    hustings agent --group billing --check
    hustings agent --config hustings.toml
    hustings agent --group billing --name web-1 --join 10.0.0.2:7400 --key billing.key
    """
    from hustings.agent.config import load

    given = {name.replace("_", "-"): value for name, value in flags.items()}
    read = load(config, given, os.environ)
    with needs_agent_extra("the agent"):
        from hustings.agent.daemon import Daemon, Sockets, checked
        from hustings.agent.event_loop import run as run_loop
        from hustings.agent.logs import Log
    sockets = Sockets(read)
    if check:
        for note in (*read.notes, sockets.warning, checked(read)):
            if note is not None:
                warn(note)
        groups = ", ".join(group.group for group in read.groups)
        click.echo(f"fine: members in {groups} on {read.bind}, HTTP on {read.http}")
        return 0

    async def run() -> int:
        with Log(sys.stderr, read.log_format, read.log_level) as log:
            again = Daemon(read, sockets, log, lambda: load(config, given, os.environ))
            return await again.run()

    return run_loop(run())
