"""Golden interaction scripts: commands, and the output of each below it.

    # A comment, kept as it is.
    > nodes 2 bully
    1..2: bully, highest-id

    > start
    1 2 start

A line that begins with `>` is a command; the lines below it, up to a blank line, a comment or the
next command, are its output. `play` returns the script with the output it has now: equal text
means nothing has changed, and writing the text back is how a script is rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass

from hustings.core.errors import BadInput, UnknownName
from hustings.testing.script_commands import COMMANDS, Resolver, ScriptSession


class BadScript(BadInput):
    """A script that cannot be played, with the file and the line."""


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """One command of a script."""

    line: int  # counted from 1
    name: str
    words: tuple[str, ...]


def play(text: str, resolve: Resolver, name: str = "script") -> str:
    """The script with every output replaced by what its command does now.

    `resolve` finds a protocol by name; `name` is how errors call the script.
    """
    session = ScriptSession(resolve)
    lines: list[str] = []
    speaking = False  # whether the line before was a command or output
    for place, line in enumerate(text.splitlines(), 1):
        if line.startswith(">"):
            lines += [line.rstrip(), *_perform(session, _command(line, place, name), name)]
            speaking = True
        elif not line.strip() or line.startswith("#"):
            lines.append(line.rstrip())
            speaking = False
        elif not speaking:
            raise BadScript(f"{name}:{place}: output without a command above it: {line.strip()!r}")
    return "".join(f"{line}\n" for line in lines)


def _command(line: str, place: int, name: str) -> ScriptLine:
    words = line.removeprefix(">").split()
    if not words:
        raise BadScript(f"{name}:{place}: a command is missing behind '>'")
    return ScriptLine(place, words[0], tuple(words[1:]))


def _perform(session: ScriptSession, command: ScriptLine, name: str) -> list[str]:
    where = f"{name}:{command.line}"
    known = COMMANDS.get(command.name)
    if known is None:
        raise BadScript(f"{where}: {UnknownName('command', command.name, COMMANDS)}")
    try:
        return known.run(session, command.words)
    except BadInput as error:
        raise BadScript(f"{where}: {error} (usage: {known.usage})") from error
    except Exception as error:
        error.add_note(f"while playing {where}: {command.name} {' '.join(command.words)}")
        raise
