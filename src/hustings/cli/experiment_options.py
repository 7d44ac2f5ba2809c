"""The options that describe an experiment: who is in the group, its network, and what happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hustings.cli.options import REAL, WHOLE
from hustings.sim.delay import USAGES
from hustings.sim.mobility import MODELS
from hustings.sim.scenarios import HORIZON, SCENARIOS
from hustings.sim.time_series import MAX_STEPS

F = TypeVar("F", bound=Callable[..., Any])

SUBSTRATE_OPTIONS = (
    click.option(
        "--membership",
        default="ideal",
        show_default=True,
        help="ideal (views and multicasts are given, with --view and --loss), or gossip (members "
        "gossip to find each other, and multicasts are repaired by anti-entropy).",
    ),
    click.option(
        "--gossip-set",
        "gossip_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="gossip: T_gossip, fanout, view_size, T_fail, rounds, digests, and more.",
    ),
)

FAULT_HELP = (
    "A fault, may be given several times: crash:7@2.5 (at time 2.5), "
    "crash:7+3@0 (after its 3rd transmission from time 0), restart:7@9, pause:3@1, resume:3@5, "
    "leave:4@2, call:2@0, suspect:3>7@1 and alive:3>7@2 (a detector that errs), "
    "partition:1,2|3-5@2, one-way:1>2,3@2 (several cuts add up), heal:@9 (all partitions), "
    "heal:one-way@9 (all one-way cuts), heal:one-way:1>2,3@9 (this one)."
)

GUARD_OPTIONS = (
    click.option(
        "--guard",
        default="none",
        show_default=True,
        help="What grants leases: none, memory (a register, number 0 in partitions), or quorum "
        "(the first members vote).",
    ),
    click.option(
        "--guard-set",
        "guard_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="ttl (the length of a lease), drift (how much the rates of clocks may differ), retry; "
        "for a quorum voters (3, 5 or 7).",
    ),
)

GROUP_OPTIONS = (
    click.option(
        "-n",
        "--members",
        type=WHOLE,
        default=None,
        show_default="8, or as many as --order names",
        help="Members, with ids 1 to n; n counts the crashed leader, but not members that join.",
    ),
    click.option(
        "--scenario",
        type=str,
        default="start",
        show_default=True,
        help=f"What happens to the group: {', '.join(SCENARIOS)}.",
    ),
    click.option(
        "--detector",
        "detectors",
        multiple=True,
        metavar="ID",
        help="The member that notices the leader's crash; several notice it at once. "
        "[default: the worst live member; none where members announce]",
    ),
    click.option(
        "--initiator",
        "initiators",
        multiple=True,
        metavar="ID",
        help="The member that calls the election; several call it at once.",
    ),
    click.option(
        "--crashed", default="", metavar="IDS", help="Further dead members: 60,61 or 60-63."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the protocol: see hustings protocols NAME.",
    ),
    click.option(
        "--delay",
        default="1",
        show_default=True,
        help=f"One-way delay: {', '.join(('NUMBER', *USAGES))}, or file.py:Class:NUMBER,...",
    ),
    click.option(
        "--choice",
        default="highest-id",
        show_default=True,
        help="Which member is best: highest-id, lowest-id, highest:ATTR, lowest:ATTR,...",
    ),
    click.option(
        "--attribute",
        "attributes",
        multiple=True,
        metavar="NAME=VALUES",
        help="What --choice ranks by: cpu=3,1,2 for each member, or cpu=random.",
    ),
    click.option(
        "--environment",
        default=None,
        metavar="FILE",
        help="The network, pauses, crashes and clocks of an environment file. Time is in seconds. "
        "Instead of --delay, --loss, --sites, --pause, --drift and the like.",
    ),
    click.option(
        "--seed", type=WHOLE, default=1, show_default=True, help="Decides everything random."
    ),
)

WORLD_OPTIONS = (
    click.option(
        "--order",
        default=None,
        metavar="ORDER",
        help="Elections on a ring, the ids clockwise: random (drawn in every run), decreasing, or "
        "a list such as 3,32,5,80,6,12.  [default: increasing]",
    ),
    click.option("--loss", type=REAL, default=0.0, help="Probability that a message is lost."),
    click.option(
        "--loss-model",
        type=str,
        default=None,
        help="uncorrelated (each receiver by itself), correlated (all receivers or none), adjusted "
        "(uncorrelated, and more with --collision), burst (losses follow each other on a link), or "
        "file.py:Class.",
    ),
    click.option(
        "--loss-set",
        "loss_settings",
        multiple=True,
        metavar="KEY=NUMBER",
        help="A setting of the loss model. burst: length (of a bad spell, in messages, 5), bad "
        "(what a bad link loses, 1).",
    ),
    click.option(
        "--collision",
        type=REAL,
        default=0.0,
        help="Extra loss for each message under way at the same time.",
    ),
    click.option(
        "--link",
        "links",
        multiple=True,
        metavar="A>B=DELAY",
        help="A link with a delay of its own.",
    ),
    click.option(
        "--sites",
        default=None,
        metavar="NAME=MEMBERS,...",
        help="Members at several sites, as a=20,b=10: the first 20 at a. --delay and --loss hold "
        "within a site.",
    ),
    click.option(
        "--between",
        multiple=True,
        metavar="A,B=DELAY",
        help="The delay between two sites, as --delay has it; A>B=DELAY in one direction.",
    ),
    click.option(
        "--between-loss",
        multiple=True,
        metavar="A,B=LOSS",
        help="The loss between two sites; others lose as --loss says.",
    ),
    click.option("--duplicate", type=REAL, default=0.0, help="Probability of a second copy."),
    click.option(
        "--reorder",
        type=REAL,
        default=0.0,
        help="Probability that a message is held back by up to --hold-back.",
    ),
    click.option("--hold-back", type=REAL, default=0.0, help="See --reorder."),
    click.option("--fifo", is_flag=True, help="Links keep the order of their messages."),
    click.option("--fault", "faults", multiple=True, metavar="WHAT:WHO@TIME", help=FAULT_HELP),
    click.option(
        "--view",
        type=REAL,
        default=None,
        help="Probability that a member knows another member.  [default: 1]",
    ),
    click.option("--drift", type=REAL, default=0.0, help="Largest error of a clock's rate."),
    click.option("--offset", type=REAL, default=0.0, help="Largest offset of a clock."),
    click.option(
        "--pause",
        type=REAL,
        default=None,
        metavar="RATE",
        help="Members stand still at random, each RATE times in a unit of time.",
    ),
    click.option(
        "--pause-set",
        "pause_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="length (of a pause, as --delay has it, 1), longest (no pause takes longer).",
    ),
    click.option(
        "--detection",
        default="scripted",
        show_default=True,
        help="scripted (as --detector says), perfect, heartbeat, accrual, or file.py:Class.",
    ),
    click.option(
        "--detection-set",
        "detection_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="perfect: latency. heartbeat: T, D, pattern. accrual: and more.",
    ),
    *GUARD_OPTIONS,
    *SUBSTRATE_OPTIONS,
    click.option(
        "--composed",
        is_flag=True,
        help="Members as hustings.join builds them: gossip membership, detector, leadership "
        "layer, stall bound, lease. Time is in seconds; --delay 0.05 gives the defaults of join.",
    ),
    click.option(
        "--leadership-set",
        "leadership_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="--composed: stall_bound, preempt_after, reconcile_interval, leaderless_timeout, and "
        "more.",
    ),
    click.option(
        "--measure-set",
        "measure",
        multiple=True,
        metavar="KEY=VALUE",
        help="--composed: members measure what=loss or delay, and --choice lowest:loss or "
        "lowest:delay ranks by it; T_M, window, step.",
    ),
    click.option(
        "--mobility",
        default=None,
        metavar="MODEL",
        help=f"Members move, and reach members in range: {' or '.join(MODELS)}. Each component is "
        "watched for its own leader until the time limit. Needs --detection or --composed, unless "
        "leaders announce themselves.",
    ),
    click.option(
        "--mobility-set",
        "mobility_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="side (of the square, 1000), range (250), links (routed: over several hops; direct: "
        "one hop), settle (how long a component may lack one leader); random-waypoint: speed_min "
        "(1), speed_max (10), pause (0).",
    ),
    click.option(
        "--arrivals", type=REAL, metavar="MEAN", help="churn: mean time between two arrivals."
    ),
    click.option(
        "--departures", type=REAL, metavar="MEAN", help="churn: mean time between two departures."
    ),
    click.option(
        "--orderly", is_flag=True, help="churn: members leave with a farewell, and do not crash."
    ),
    click.option(
        "--linger",
        type=REAL,
        default=0.0,
        help="How long a member that leaves stays up to repeat its farewell.",
    ),
    click.option(
        "--until",
        type=REAL,
        default=None,
        help=f"Time limit; {HORIZON:g} if the scenario has no end of its own.",
    ),
    click.option("--max-events", type=WHOLE, default=None, help="Event limit."),
    click.option(
        "--time-series",
        type=REAL,
        default=None,
        metavar="STEP",
        help="Also report how many members lead at 0, STEP, 2 STEP, ...: mean, standard error and "
        f"maximum over all runs, up to the end of the longest, at most {MAX_STEPS:,} steps. For "
        "members that announce, or churn.",
    ),
    click.option(
        "--consensus",
        is_flag=True,
        help="Judge consensus, too: each member decides the last bit of its first leader's id.",
    ),
    click.option("--debug", is_flag=True, help="Raise when a protocol keeps its context."),
)


def group_options(command: F) -> F:
    """Options that say who is in the group and what happens to it."""
    for option in reversed(GROUP_OPTIONS):
        command = option(command)
    return command


def world_options(command: F) -> F:
    """Options of the network, the clocks and the limits."""
    for option in reversed(WORLD_OPTIONS):
        command = option(command)
    return command
