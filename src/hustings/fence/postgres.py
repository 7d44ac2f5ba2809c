"""PostgreSQL: transactions of a leader that was replaced are refused by the database.

    install(connection)                      # once, or put `migration()` among your own
    fence = PostgresFence("jobs")

    async with fence.transaction(connection, term.token):         # asyncpg, psycopg (async)
        await connection.execute("UPDATE ...")

    with fence.transaction_sync(connection, term.token):          # psycopg, any DB-API connection
        cursor.execute("UPDATE ...")

Or in plain SQL, in any language, at the beginning of a transaction:

    SELECT hustings_fence('jobs', 7);

Or in one statement, if it is a plain change of known rows (`one_statement` writes this):

    WITH fence AS MATERIALIZED (SELECT hustings_fence('jobs', 7) AS token)
    UPDATE account SET ... FROM fence WHERE account.id = 1 AND fence.token = 7

A stale token raises SQLSTATE LE001, so the transaction cannot commit. From the check to its end the
transaction holds a lock. Transactions of the same token share the lock. A larger token waits for
them, and newcomers wait behind the larger token. So everything that a smaller token writes is
committed before a larger token enters. At READ COMMITTED the statements after the check see all of
it. A single statement looks up its rows as of its beginning: a change that depends on what it reads
elsewhere needs a transaction with the check first.

At REPEATABLE READ and SERIALIZABLE a transaction sees the database as of its first statement, which
is before the wait for the lock. There a token passes only if the snapshot already contains the
token: then all transactions with smaller tokens had ended before the snapshot was taken. The first
transaction of a new token is refused with SQLSTATE LE002 (`SnapshotTooOld`). `transaction` and
`transaction_sync` then raise the token in a short transaction at READ COMMITTED and begin again.
Code that opens transactions by hand calls `raise_token` once, when its term begins. In plain SQL:

    BEGIN ISOLATION LEVEL READ COMMITTED; SELECT hustings_fence('jobs', 7); COMMIT;

At these levels, a transaction whose token was overtaken after its snapshot fails with 40001, as
other conflicts do.

A writer that is stopped in the middle of its transaction keeps its lock. `idle` bounds that: after
`idle` seconds without a statement the server ends the session, and the transaction with it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from hustings.core.errors import BadInput, HustingsError
from hustings.fence.fence import FenceBroken, FenceBusy, StaleToken, checked

STALE = "LE001"  # the SQLSTATE of a stale token; classes from I to Z are free for use
OLD_SNAPSHOT = "LE002"
WAIT = 5.0
IDLE = 5.0
LONGEST_NAME = 255

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HIGHEST = re.compile(r"highest=([0-9]{1,19})")
# spells HUST: keeps our advisory locks apart from those of other programs
_LOCK_CLASS = 1_213_551_444

_READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
_NOT_ITS_OWN = "raise_token needs a transaction of its own: commit or roll back the open one first"

_MIGRATION = """\
SELECT pg_advisory_xact_lock({lock}, 0);  -- two who install at once take turns

CREATE TABLE IF NOT EXISTS {schema}.hustings_fences (
    resource text PRIMARY KEY CHECK (length(resource) BETWEEN 1 AND {longest}),
    token bigint NOT NULL CHECK (token > 0)
);

CREATE OR REPLACE FUNCTION {schema}.hustings_fence(of_resource text, with_token bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $fence$
DECLARE
    stored bigint;
    found_token bigint;
BEGIN
    IF of_resource IS NULL OR with_token IS NULL OR with_token <= 0 THEN
        RAISE EXCEPTION 'a fence needs a resource and a token between 1 and 2**63 - 1'
            USING ERRCODE = '22023';
    END IF;
    SELECT token INTO stored FROM {schema}.hustings_fences WHERE resource = of_resource;
    -- A snapshot that lasts was taken before any wait below. One that holds this token was taken
    -- after all smaller ones had ended; one that does not may miss what they committed last.
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
        AND (stored IS NULL OR stored < with_token)
    THEN
        RAISE EXCEPTION 'token % of % is newer than the snapshot of this % transaction',
            with_token, of_resource, current_setting('transaction_isolation')
            USING ERRCODE = '{old_snapshot}',
            HINT = 'Roll back, call hustings_fence in a READ COMMITTED transaction, begin again.';
    END IF;
    -- Row locks alone would let a stream of shared ones overtake a larger token for ever;
    -- these locks queue, and go with the transaction.
    IF stored = with_token THEN
        PERFORM pg_advisory_xact_lock_shared({lock}, hashtext(of_resource));
        SELECT token INTO found_token FROM {schema}.hustings_fences
            WHERE resource = of_resource FOR SHARE;
    ELSIF stored IS NULL OR stored < with_token THEN
        PERFORM pg_advisory_xact_lock({lock}, hashtext(of_resource));
        INSERT INTO {schema}.hustings_fences AS held (resource, token)
            VALUES (of_resource, with_token)
            ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token
            WHERE held.token < EXCLUDED.token;
        SELECT token INTO found_token FROM {schema}.hustings_fences
            WHERE resource = of_resource;
    END IF;
    IF found_token IS DISTINCT FROM with_token THEN
        SELECT token INTO stored FROM {schema}.hustings_fences WHERE resource = of_resource;
        RAISE EXCEPTION 'token % of % is stale: % was here', with_token, of_resource, stored
            USING ERRCODE = '{stale}', DETAIL = 'highest=' || stored;
    END IF;
    RETURN with_token;
END
$fence$;

CREATE OR REPLACE FUNCTION {schema}.hustings_fence_within(
    of_resource text, with_token bigint, wait_ms integer, idle_ms integer
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $fence$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', idle_ms::text, true);
    PERFORM set_config('lock_timeout', wait_ms::text, true);
    PERFORM {schema}.hustings_fence(of_resource, with_token);
    PERFORM set_config('lock_timeout', before, true);
    RETURN with_token;
END
$fence$;
"""


def migration(schema: str = "public") -> str:
    """The SQL that installs the fence, for the user's own migrations. It may run again."""
    return _MIGRATION.format(
        schema=_schema(schema),
        longest=LONGEST_NAME,
        lock=_LOCK_CLASS,
        stale=STALE,
        old_snapshot=OLD_SNAPSHOT,
    )


def install(connection: Any, schema: str = "public") -> None:
    """Install the fence over a DB-API connection, and commit."""
    cursor = connection.cursor()
    try:
        cursor.execute(migration(schema))
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        cursor.close()


async def install_async(connection: Any, schema: str = "public") -> None:
    """Install the fence over a connection of asyncpg, or an asynchronous one of psycopg."""
    async with connection.transaction():
        await connection.execute(migration(schema))


def stale_token(error: BaseException) -> StaleToken | None:
    """The stale token in a driver's error, if the error is ours: for code that uses plain SQL."""
    if _sqlstate(error) != STALE:
        return None
    detail = getattr(error, "detail", None) or getattr(
        getattr(error, "diag", None), "message_detail", None
    )
    primary = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    highest = _HIGHEST.search(str(detail))
    token = re.search(r"token ([0-9]{1,19}) of", str(primary))
    if highest is None or token is None:
        raise FenceBroken(f"the database refused a token as stale, without saying more: {error}")
    return StaleToken(int(token[1]), int(highest[1]))


class SnapshotTooOld(HustingsError):
    """This transaction may not see the last commits of the leader before. Nothing was written."""

    def __init__(self, resource: str) -> None:
        super().__init__(
            f"this transaction's snapshot is older than the token, so it may miss what the leader "
            f"before wrote to {resource!r}: roll back, call raise_token (or raise_token_sync) "
            "outside of a transaction, and begin again; or use READ COMMITTED"
        )
        self.resource = resource

    def __reduce__(self) -> tuple[type[SnapshotTooOld], tuple[str]]:
        """Support pickling: the error may have to return from a worker process."""
        return type(self), (self.resource,)


class PostgresFence:
    """The fence around the data of one resource. It holds no connection of its own."""

    def __init__(
        self, resource: str, *, schema: str = "public", wait: float = WAIT, idle: float = IDLE
    ) -> None:
        """`wait` bounds the wait for other transactions, `idle` a pause within a transaction."""
        if not 0 < len(resource) <= LONGEST_NAME or "\0" in resource:
            raise BadInput(f"a resource's name has between 1 and {LONGEST_NAME} characters")
        self._resource = resource
        self._schema = _schema(schema)
        self._wait = _milliseconds("wait", wait)
        self._idle = _milliseconds("idle", idle)

    @asynccontextmanager
    async def transaction(self, connection: Any, token: int) -> AsyncIterator[None]:
        """A transaction that commits only under a token that is not stale.

        It has the connection's own isolation level. At each level it sees all that smaller tokens
        wrote.
        """
        with self._telling():
            async with AsyncExitStack() as stack:
                stack.push_async_exit(await self._begun(connection, token))
                yield

    async def _begun(self, connection: Any, token: int) -> Any:
        idle = _in_transaction(connection) is False
        try:
            return await self._checked_first(connection, token)
        except SnapshotTooOld:
            if not idle:  # the transaction is the caller's, so it cannot begin anew here
                raise
        await self.raise_token(connection, token)
        return await self._checked_first(connection, token)

    async def _checked_first(self, connection: Any, token: int) -> Any:
        transaction = connection.transaction()
        await transaction.__aenter__()
        try:
            await self.check(connection, token)
        except BaseException as error:
            await transaction.__aexit__(type(error), error, error.__traceback__)
            raise
        return transaction

    async def raise_token(self, connection: Any, token: int) -> None:
        """Make `token` the highest, wait until all smaller ones have ended, and do nothing else.

        For code that opens transactions at REPEATABLE READ or SERIALIZABLE by hand: call it when a
        term begins. The connection must not be inside of a transaction.
        """
        checked(token)
        if _in_transaction(connection):
            raise BadInput(_NOT_ITS_OWN)
        async with connection.transaction():
            await connection.execute(_READ_COMMITTED)
            await self.check(connection, token)

    async def check(self, connection: Any, token: int) -> None:
        """Do the check alone, for a transaction that is already open."""
        checked(token)
        with self._telling():
            if hasattr(connection, "fetchval"):  # asyncpg
                if not _in_transaction(connection):
                    raise BadInput("a fence needs a transaction: open one, and check within it")
                await connection.fetchval(self._sql("$1, $2, $3, $4"), *self._values(token))
            else:
                if connection.autocommit and not _in_transaction(connection):
                    raise BadInput("a fence needs a transaction: open one, and check within it")
                await connection.execute(self._sql("%s, %s, %s, %s"), self._values(token))

    @contextmanager
    def transaction_sync(self, connection: Any, token: int) -> Iterator[None]:
        """A transaction of a DB-API connection: checked first, committed or rolled back last.

        At REPEATABLE READ and SERIALIZABLE the first transaction of a new token raises the token
        before, if the driver tells that no transaction is open (psycopg does). Otherwise it raises
        `SnapshotTooOld`.
        """
        idle = _in_transaction(connection) is False
        with self._telling():
            try:
                try:
                    self.check_sync(connection, token)
                except SnapshotTooOld:
                    if not idle:  # otherwise the caller's own statements would be lost in silence
                        raise
                    connection.rollback()
                    self.raise_token_sync(connection, token)
                    self.check_sync(connection, token)
                yield
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    def raise_token_sync(self, connection: Any, token: int) -> None:
        """The same as `raise_token`, for a DB-API connection."""
        checked(token)
        if _in_transaction(connection):
            raise BadInput(_NOT_ITS_OWN)
        _not_by_itself(connection)
        try:
            cursor = connection.cursor()
            try:
                cursor.execute(_READ_COMMITTED)
            finally:
                cursor.close()
            self.check_sync(connection, token)
            connection.commit()
        except BaseException as error:
            connection.rollback()
            # too late to choose the level: the transaction has made a query
            if _sqlstate(error) == "25001":
                raise BadInput(_NOT_ITS_OWN) from None
            raise

    def check_sync(self, connection: Any, token: int) -> None:
        """Do the check alone, as part of a DB-API connection's transaction."""
        checked(token)
        _not_by_itself(connection)
        with self._telling():
            cursor = connection.cursor()
            try:
                cursor.execute(self._sql("%s, %s, %s, %s"), self._values(token))
            finally:
                cursor.close()

    def one_statement(self, change: str, token: str = "$1", resource: str = "$2") -> str:
        """Turn `change` into one fenced statement: an UPDATE or DELETE of known rows, or an INSERT.

        `change` refers to `fence`, with a column `token`: `UPDATE ... FROM fence WHERE ...`,
        `DELETE ... USING fence WHERE ...`, `INSERT ... SELECT ... FROM fence`. A text without
        `fence` would run unchecked, and is refused. A text with comments is refused, too. The
        caller must make the rows depend on `fence`: this function does not parse SQL, and `... OR
        EXISTS (SELECT 1 FROM fence)` would pass. `token` and `resource` are placeholders as the
        driver writes them.
        """
        if "--" in change or "/*" in change:
            raise BadInput("a fenced statement has no comments")
        if not re.search(r"\b(from|using)\s+fence\b", change, re.IGNORECASE):
            raise BadInput("the statement must take its rows FROM fence (or USING fence)")
        fence = f"{self._schema}.hustings_fence({resource}, {token})"
        return f"WITH fence AS MATERIALIZED (SELECT {fence} AS token) {change}"

    @property
    def resource(self) -> str:
        """The name of the thing that the tokens protect."""
        return self._resource

    def _sql(self, places: str) -> str:
        return f"SELECT {self._schema}.hustings_fence_within({places})"

    def _values(self, token: int) -> tuple[str, int, int, int]:
        return self._resource, token, self._wait, self._idle

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            stale = stale_token(error)
            if stale is not None:
                raise stale from None
            state = _sqlstate(error)
            if state == OLD_SNAPSHOT:
                raise SnapshotTooOld(self._resource) from None
            if state == "55P03":
                raise FenceBusy(
                    f"transactions with other tokens of {self._resource!r} did not end within "
                    f"{self._wait / 1000:g} s"
                ) from None
            missing = {"42883": "hustings_fence", "3F000": self._schema}.get(state or "")
            if missing is not None and missing in str(error):
                raise FenceBroken(
                    f"the fence is not installed in schema {self._schema}: run the migration"
                ) from None
            raise


def _sqlstate(error: BaseException) -> str | None:
    for name in ("sqlstate", "pgcode"):
        state = getattr(error, name, None)
        if isinstance(state, str):
            return state
    return None


def _in_transaction(connection: Any) -> bool | None:
    """Whether a connection is inside of a transaction now; None if its driver does not tell."""
    if hasattr(connection, "is_in_transaction"):  # asyncpg
        return bool(connection.is_in_transaction())
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    if status is None:
        return None
    return bool(int(status) != 0)  # psycopg: 0 is idle, in libpq's numbers


def _not_by_itself(connection: Any) -> None:
    if getattr(connection, "autocommit", False) and not _in_transaction(connection):
        raise BadInput("a fence needs a transaction: this connection commits by itself")


def _schema(name: str) -> str:
    if not _SCHEMA.fullmatch(name):
        raise BadInput(f"a schema's name has small letters, digits and underscores, not {name!r}")
    return name


def _milliseconds(name: str, seconds: float) -> int:
    if not 0.001 <= seconds <= 86_400:
        raise BadInput(f"{name} lies between 0.001 and 86400 seconds, not {seconds:g}")
    return int(seconds * 1000)
