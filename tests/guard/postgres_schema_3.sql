-- The lease of the guard of hustings. May be run again at any time, also over an older version.
-- Its owner, or whoever is granted this, can be a member:
--   GRANT USAGE ON SCHEMA hustings TO some_role;
--   GRANT SELECT, INSERT, UPDATE ON hustings.guard_lease TO some_role;

SELECT pg_advisory_xact_lock(7823640912341);  -- two who install at once take turns

CREATE SCHEMA IF NOT EXISTS hustings;

CREATE TABLE IF NOT EXISTS hustings.guard_lease (
    group_name text PRIMARY KEY,
    token bigint NOT NULL DEFAULT 0,
    holder text,                                         -- a member's name; null: nobody
    life numeric NOT NULL DEFAULT 0,                     -- which of its lives
    ttl double precision NOT NULL DEFAULT 0,             -- how long the last write counts, seconds
    favoured text                                        -- the member that alone is let in
);

-- Version 1 compared times of day. Its functions must go: a member of that version that still runs
-- would let itself in by them. A lease that it holds counts for its whole time again.
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
LANGUAGE sql IMMUTABLE AS $$ SELECT to_jsonb(3) $$;

-- A token that was told must be on disk, whatever the session has been told about haste.
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

-- A shorter ttl does not shorten what was promised before. Who wrote the last mark knows what is
-- left of that; else the time that stands in the row may have been promised just now.
CREATE OR REPLACE FUNCTION hustings.guard_covering(
    lease hustings.guard_lease, the_ttl double precision, mine bigint, remains double precision
) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(the_ttl, CASE WHEN lease.mark = mine THEN remains ELSE lease.ttl END)
$$;

-- `ended` is a mark whose time is over by the asker's clock, or 0. `known` is the highest token of
-- which the asker has heard: a row that is behind it grants nothing unless it is to be lifted.
CREATE OR REPLACE FUNCTION hustings.guard_acquire(
    the_group text, the_holder text, the_life numeric, the_ttl double precision,
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
    is_same := coalesce((lease.holder, lease.life) = (the_holder, the_life), false);
    IF NOT is_over AND NOT is_same THEN
        IF lease.holder IS NOT NULL THEN
            RETURN jsonb_build_object('granted', false, 'holder', lease.holder,
                'token', lease.token, 'mark', lease.mark, 'ttl', lease.ttl);
        ELSIF lease.favoured <> the_holder THEN
            RETURN jsonb_build_object('granted', false, 'holder', lease.favoured,
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
        SET holder = the_holder, life = the_life, token = the_token, ttl = lasting,
            mark = the_mark, favoured = NULL, written = clock_timestamp()
        WHERE group_name = the_group;
    PERFORM hustings.guard_tell(the_group);
    RETURN jsonb_build_object('granted', true, 'token', the_token, 'ttl', lasting);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_renew(
    the_group text, the_holder text, the_life numeric, the_token bigint,
    the_ttl double precision, the_mark bigint, mine bigint, remains double precision
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    lease hustings.guard_lease;
    lasting double precision;
BEGIN
    PERFORM hustings.guard_durably();
    SELECT * INTO lease FROM hustings.guard_lease WHERE group_name = the_group FOR UPDATE;
    IF (lease.holder, lease.life, lease.token) = (the_holder, the_life, the_token) THEN
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
    the_group text, the_holder text, the_life numeric, the_token bigint, the_next text,
    the_mark bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hustings.guard_durably();
    UPDATE hustings.guard_lease
        SET holder = NULL, favoured = the_next, mark = the_mark, written = clock_timestamp()
        WHERE group_name = the_group
            AND (holder, life, token) = (the_holder, the_life, the_token);
    IF FOUND THEN
        PERFORM hustings.guard_tell(the_group);
    END IF;
    RETURN to_jsonb(FOUND);
END $$;

-- For an operator: who holds keeps its token, whoever comes next has one above this.
CREATE OR REPLACE FUNCTION hustings.guard_recover(the_group text, above bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hustings.guard_durably();
    INSERT INTO hustings.guard_lease (group_name, floor) VALUES (the_group, above)
        ON CONFLICT (group_name) DO UPDATE
        SET floor = greatest(hustings.guard_lease.floor, excluded.floor);
    RETURN to_jsonb(true);
END $$;

-- A word that tells this lease from those of other databases; who finds none leaves one.
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
