"""Redis and Valkey: a check and one write in one script, refused for a leader that was replaced.

    fence = RedisFence("jobs")
    fence.call(client, term.token, "HINCRBY", fence.key("done"), "monday", 1)
    await fence.call_async(client, term.token, "SET", fence.key("state"), "ready")

It works with redis-py and valkey-py, also on a cluster: the fence's own key and the keys made by
`key` carry one hash tag, so they lie on one node. For more than one write, `script` puts the check
in front of the user's own script.

The token is a key like others, and is as durable as they are. After a crash without appendonly and
`appendfsync always`, or a failover to a replica that lagged, the newest writes may be gone, and the
token with them. The rest is an older state, in which an older leader may write again. And a server
that may evict any key when memory is short (`allkeys-...`) may evict the token: use `noeviction`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha1
from typing import Any

from hustings.core.errors import BadInput
from hustings.fence.fence import FenceBroken, StaleToken, checked

LONGEST_NAME = 255

# Numbers in Lua are doubles, exact only up to 2**53. So tokens are compared as texts, first by
# length.
_CHECK = """\
local function hustings_admit(key, token)
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= 'string' then return 'damaged' end
  local highest = redis.call('GET', key)
  if not highest then
    redis.call('SET', key, token)
    return 'admitted'
  end
  if not string.match(highest, '^[1-9]%d*$') or #highest > 19 then return 'damaged' end
  if highest == token then return 'admitted' end
  if #highest > #token or (#highest == #token and highest > token) then return highest end
  redis.call('SET', key, token)
  return 'admitted'
end
local hustings_verdict = hustings_admit(KEYS[1], ARGV[1])
if hustings_verdict ~= 'admitted' then return {'refused', hustings_verdict} end
"""
_CALL = "return {'done', redis.call(unpack(ARGV, 2))}\n"

_RESOURCE = re.compile(r"[^{}\s\x00-\x1f\x7f]{1,255}")

Argument = str | bytes | int | float


class RedisFence:
    """The fence around the data of one resource. It holds no connection of its own."""

    def __init__(self, resource: str) -> None:
        if not _RESOURCE.fullmatch(resource):
            raise BadInput(
                f"a resource's name has between 1 and {LONGEST_NAME} characters, without braces "
                "and blanks"
            )
        self._resource = resource
        self._text = _CHECK + _CALL

    @property
    def token_key(self) -> str:
        """The key of the highest token."""
        return f"hustings:fence:{{{self._resource}}}"

    def key(self, name: str) -> str:
        """A key for data of this resource, on the same node of a cluster as its token."""
        return f"{{{self._resource}}}:{name}"

    def call(
        self, client: Any, token: int, *command: Argument, keys: Sequence[str | bytes] | None = None
    ) -> Any:
        """Run one command if the token is not stale, and return the server's plain answer.

        `keys` are the keys that the command touches, unless that is only the word after its name.
        """
        return self._answer(
            token, self._run(client, self._text, *self._words(command, keys, token))
        )

    async def call_async(
        self, client: Any, token: int, *command: Argument, keys: Sequence[str | bytes] | None = None
    ) -> Any:
        """The same as `call`, for a client of redis.asyncio."""
        words = self._words(command, keys, token)
        return self._answer(token, await self._run_async(client, self._text, *words))

    def script(self, body: str) -> FencedScript:
        """The user's own Lua script behind the check.

        Its keys begin at KEYS[2], and its arguments at ARGV[2]. It may make any number of writes.
        """
        return FencedScript(self, body)

    def _words(
        self, command: Sequence[Argument], keys: Sequence[str | bytes] | None, token: int
    ) -> tuple[list[str | bytes], list[Argument]]:
        checked(token)
        if not command:
            raise BadInput("a fence needs a command to run, as in call(client, token, 'SET', ...)")
        if keys is None:
            first = command[1] if len(command) > 1 else None
            keys = [first] if isinstance(first, str | bytes) else []
        return [self.token_key, *keys], [str(token), *command]

    def _run(
        self, client: Any, text: str, keys: Sequence[str | bytes], arguments: Sequence[Argument]
    ) -> Any:
        try:
            return client.evalsha(_digest(text), len(keys), *keys, *arguments)
        except Exception as error:
            if not _unknown_script(error):
                raise
            return client.eval(text, len(keys), *keys, *arguments)

    async def _run_async(
        self, client: Any, text: str, keys: Sequence[str | bytes], arguments: Sequence[Argument]
    ) -> Any:
        try:
            return await client.evalsha(_digest(text), len(keys), *keys, *arguments)
        except Exception as error:
            if not _unknown_script(error):
                raise
            return await client.eval(text, len(keys), *keys, *arguments)

    def _answer(self, token: int, answer: Any) -> Any:
        if not isinstance(answer, list | tuple) or not answer:
            raise BadInput(
                "this client does not answer at once: a fence needs a plain client, not a "
                "pipeline, and with call_async one of redis.asyncio"
            )
        verdict, *rest = answer
        if verdict in ("done", b"done"):
            return rest[0] if rest else None
        highest = rest[0].decode() if isinstance(rest[0], bytes) else str(rest[0])
        if not highest.isdigit():
            raise FenceBroken(
                f"key {self.token_key} does not hold a token: put back the highest one that was "
                "ever granted"
            )
        raise StaleToken(token, int(highest))


class FencedScript:
    """A script of several writes behind one check."""

    def __init__(self, fence: RedisFence, body: str) -> None:
        self._fence = fence
        # A function gives the answer one form, whatever the body returns or leaves out.
        self._text = f"{_CHECK}return {{'done', (function()\n{body}\nend)()}}\n"

    def call(
        self,
        client: Any,
        token: int,
        keys: Sequence[str | bytes] = (),
        arguments: Sequence[Argument] = (),
    ) -> Any:
        """Run the script if the token is not stale."""
        words = [self._fence.token_key, *keys], [str(checked(token)), *arguments]
        return self._fence._answer(token, self._fence._run(client, self._text, *words))

    async def call_async(
        self,
        client: Any,
        token: int,
        keys: Sequence[str | bytes] = (),
        arguments: Sequence[Argument] = (),
    ) -> Any:
        """The same as `call`, for a client of redis.asyncio."""
        words = [self._fence.token_key, *keys], [str(checked(token)), *arguments]
        answer = await self._fence._run_async(client, self._text, *words)
        return self._fence._answer(token, answer)


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


def _unknown_script(error: Exception) -> bool:
    """Whether the server does not know the script. The error's name tells, without a client."""
    return type(error).__name__ == "NoScriptError" or str(error).startswith("NOSCRIPT")
