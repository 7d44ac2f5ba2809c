"""What the PostgreSQL guard needs in a database: one table, and a function for each question.

Every function is one step under the lock of its group's row, and reads no clock: the server's time
of day may be stepped. Every write leaves a mark that its writer has drawn. A member that has seen
one mark for the time in the row, on its own clock, asks with that mark as `ended`. It takes the
lease if the row still has the mark. No function keeps anything in the session, so that a pooler may
use another session for every statement. Every write is announced on the group's channel: an
observer measures the lease from the moment at which the announcement arrives.
"""

from __future__ import annotations

from hashlib import sha256

VERSION = 4

MIGRATION = """\
-- The leases of the PostgreSQL guard of hustings. It is safe to run this again at any time, also
-- over an older version. The owner of the schema can be a member, and so can a role with these:
--   GRANT USAGE ON SCHEMA hustings TO some_role;
--   GRANT SELECT, INSERT, UPDATE ON hustings.guard_lease TO some_role;

SELECT pg_advisory_xact_lock(7823640912341);  -- installations at the same time take turns

CREATE SCHEMA IF NOT EXISTS hustings;

-- Until version 3 two columns, and arguments of functions, had other names.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_attribute
        WHERE attrelid = to_regclass('hustings.guard_lease') AND attname = 'life'
    ) THEN
        ALTER TABLE hustings.guard_lease RENAME COLUMN life TO incarnation;
        ALTER TABLE hustings.guard_lease RENAME COLUMN favoured TO successor;
        DROP FUNCTION IF EXISTS hustings.guard_acquire(text, text, numeric, double precision,
            bigint, bigint, bigint, double precision, bigint, boolean);
        DROP FUNCTION IF EXISTS hustings.guard_renew(text, text, numeric, bigint,
            double precision, bigint, bigint, double precision);
        DROP FUNCTION IF EXISTS hustings.guard_release(text, text, numeric, bigint, text, bigint);
    END IF;
END $$;

CREATE TABLE IF NOT EXISTS hustings.guard_lease (
    group_name text PRIMARY KEY,
    token bigint NOT NULL DEFAULT 0,
    holder text,                                         -- a member's name; null: no holder
    incarnation numeric NOT NULL DEFAULT 0,              -- the incarnation of the holder
    ttl double precision NOT NULL DEFAULT 0,             -- how long the last write counts, seconds
    successor text                                       -- the only member that may enter next
);

-- Version 1 compared times of day. Its functions must go: a member of that version that still runs
-- would let itself in by them. A lease that such a member holds counts for its whole time again.
DROP FUNCTION IF EXISTS hustings.guard_acquire(text, text, numeric, double precision);
DROP FUNCTION IF EXISTS hustings.guard_renew(text, text, numeric, bigint, double precision);
DROP FUNCTION IF EXISTS hustings.guard_release(text, text, numeric, bigint, text);
ALTER TABLE hustings.guard_lease
    DROP COLUMN IF EXISTS until,
    DROP COLUMN IF EXISTS favoured_until,
    ADD COLUMN IF NOT EXISTS mark bigint NOT NULL DEFAULT 0,     -- of the last write
    ADD COLUMN IF NOT EXISTS floor bigint NOT NULL DEFAULT 0,    -- all later tokens are larger
    ADD COLUMN IF NOT EXISTS written timestamptz,                -- for people: never compared
    ADD COLUMN IF NOT EXISTS identity text;                      -- version 3: which lease this is
UPDATE hustings.guard_lease SET mark = 1 + floor(random() * 1e15)::bigint WHERE mark = 0;

CREATE OR REPLACE FUNCTION hustings.guard_version() RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$ SELECT to_jsonb(4) $$;

-- A token that a member has received must be on disk, also if the session's settings say otherwise.
CREATE OR REPLACE FUNCTION hustings.guard_durably() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_tell(the_group text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify(
        'hustings_' || left(encode(sha256(convert_to(the_group, 'UTF8')), 'hex'), 40), '')
$$;

-- A shorter ttl does not shorten an earlier promise. The member that wrote the last mark knows how
-- much time of it is left. For another member, the whole time in the row may be left.
CREATE OR REPLACE FUNCTION hustings.guard_covering(
    lease hustings.guard_lease, the_ttl double precision, mine bigint, remains double precision
) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(the_ttl, CASE WHEN lease.mark = mine THEN remains ELSE lease.ttl END)
$$;

-- `ended` is a mark whose time is over by the clock of the member that asks, or 0. `known` is the
-- highest token that this member knows. Without `lift`, a row with a lower token grants nothing.
CREATE OR REPLACE FUNCTION hustings.guard_acquire(
    the_group text, the_holder text, the_incarnation numeric, the_ttl double precision,
    the_mark bigint, ended bigint, mine bigint, remains double precision, known bigint,
    lift boolean
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    lease hustings.guard_lease;
    the_token bigint;
    last_token bigint;
    lasting double precision := the_ttl;
    is_over boolean;
    is_same boolean;
BEGIN
    PERFORM hustings.guard_durably();
    SELECT * INTO lease FROM hustings.guard_lease WHERE group_name = the_group FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO hustings.guard_lease (group_name) VALUES (the_group) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT lease FROM hustings.guard_lease
            WHERE group_name = the_group FOR UPDATE;
    END IF;
    is_over := ended <> 0 AND lease.mark = ended;
    is_same := coalesce((lease.holder, lease.incarnation) = (the_holder, the_incarnation), false);
    IF NOT is_over AND NOT is_same THEN
        IF lease.holder IS NOT NULL THEN
            RETURN jsonb_build_object('granted', false, 'holder', lease.holder,
                'token', lease.token, 'mark', lease.mark, 'ttl', lease.ttl);
        ELSIF lease.successor <> the_holder THEN
            RETURN jsonb_build_object('granted', false, 'holder', lease.successor,
                'token', 0, 'mark', lease.mark, 'ttl', lease.ttl);
        END IF;
    END IF;
    IF is_same AND NOT is_over AND lease.token >= known THEN
        the_token := lease.token;
    ELSE
        last_token := greatest(lease.token, lease.floor);
        IF last_token < known AND NOT lift THEN
            RETURN jsonb_build_object('behind', last_token);
        END IF;
        the_token := greatest(last_token, known) + 1;
    END IF;
    IF is_same THEN
        lasting := hustings.guard_covering(lease, the_ttl, mine, remains);
    END IF;
    UPDATE hustings.guard_lease
        SET holder = the_holder, incarnation = the_incarnation, token = the_token, ttl = lasting,
            mark = the_mark, successor = NULL, written = clock_timestamp()
        WHERE group_name = the_group;
    PERFORM hustings.guard_tell(the_group);
    RETURN jsonb_build_object('granted', true, 'token', the_token, 'ttl', lasting);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_renew(
    the_group text, the_holder text, the_incarnation numeric, the_token bigint,
    the_ttl double precision, the_mark bigint, mine bigint, remains double precision
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    lease hustings.guard_lease;
    lasting double precision;
BEGIN
    PERFORM hustings.guard_durably();
    SELECT * INTO lease FROM hustings.guard_lease WHERE group_name = the_group FOR UPDATE;
    IF (lease.holder, lease.incarnation, lease.token)
        = (the_holder, the_incarnation, the_token)
    THEN
        lasting := hustings.guard_covering(lease, the_ttl, mine, remains);
        UPDATE hustings.guard_lease
            SET ttl = lasting, mark = the_mark, written = clock_timestamp()
            WHERE group_name = the_group;
        PERFORM hustings.guard_tell(the_group);
        RETURN jsonb_build_object('granted', true, 'ttl', lasting);
    END IF;
    RETURN jsonb_build_object('granted', false);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_release(
    the_group text, the_holder text, the_incarnation numeric, the_token bigint, the_next text,
    the_mark bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hustings.guard_durably();
    UPDATE hustings.guard_lease
        SET holder = NULL, successor = the_next, mark = the_mark, written = clock_timestamp()
        WHERE group_name = the_group
            AND (holder, incarnation, token) = (the_holder, the_incarnation, the_token);
    IF FOUND THEN
        PERFORM hustings.guard_tell(the_group);
    END IF;
    RETURN to_jsonb(FOUND);
END $$;

-- For an operator: the present holder keeps its token. The token of the next holder is larger than
-- `above`.
CREATE OR REPLACE FUNCTION hustings.guard_recover(the_group text, above bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hustings.guard_durably();
    INSERT INTO hustings.guard_lease (group_name, floor) VALUES (the_group, above)
        ON CONFLICT (group_name) DO UPDATE
        SET floor = greatest(hustings.guard_lease.floor, excluded.floor);
    RETURN to_jsonb(true);
END $$;

-- The random word by which members know that they use the same database. The first member that
-- asks stores it.
CREATE OR REPLACE FUNCTION hustings.guard_name(the_group text, word text, instead boolean)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    the_identity text;
BEGIN
    PERFORM hustings.guard_durably();
    INSERT INTO hustings.guard_lease (group_name, identity) VALUES (the_group, word)
        ON CONFLICT (group_name) DO UPDATE SET identity = CASE
            WHEN instead THEN excluded.identity
            ELSE coalesce(hustings.guard_lease.identity, excluded.identity) END
        RETURNING identity INTO the_identity;
    RETURN to_jsonb(the_identity);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_look(the_group text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT jsonb_build_object('holder', holder, 'token', token, 'mark', mark, 'ttl', ttl)
        FROM hustings.guard_lease WHERE group_name = the_group
    ), '{"holder": null, "token": 0, "mark": 0, "ttl": 0}')
$$;
"""


def channel_of(group: str) -> str:
    """The channel of this group's changes. Names of channels are short, hence the digest.

    If two groups share a channel, they only wake each other's observers for nothing.
    """
    return "hustings_" + sha256(group.encode()).hexdigest()[:40]
