-- The lease of the guard of hustings. May be run again at any time.
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
    ttl double precision NOT NULL DEFAULT 0,             -- asked for last, in seconds
    until timestamptz NOT NULL DEFAULT '-infinity',
    favoured text,                                       -- the member that alone is let in
    favoured_until timestamptz NOT NULL DEFAULT '-infinity'
);

CREATE OR REPLACE FUNCTION hustings.guard_version() RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$ SELECT to_jsonb(1) $$;

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

CREATE OR REPLACE FUNCTION hustings.guard_acquire(
    the_group text, the_holder text, the_life numeric, the_ttl double precision
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    lease hustings.guard_lease;
    moment timestamptz;
    ending timestamptz;
BEGIN
    PERFORM hustings.guard_durably();
    SELECT * INTO lease FROM hustings.guard_lease WHERE group_name = the_group FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO hustings.guard_lease (group_name) VALUES (the_group) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT lease FROM hustings.guard_lease
            WHERE group_name = the_group FOR UPDATE;
    END IF;
    moment := clock_timestamp();
    ending := moment + make_interval(secs => the_ttl);
    IF lease.holder IS NOT NULL AND moment < lease.until THEN
        IF (lease.holder, lease.life) <> (the_holder, the_life) THEN
            RETURN jsonb_build_object('granted', false, 'holder', lease.holder,
                'token', lease.token, 'remaining', extract(epoch FROM lease.until - moment));
        END IF;
        UPDATE hustings.guard_lease SET ttl = the_ttl, until = greatest(until, ending)
            WHERE group_name = the_group;
        RETURN jsonb_build_object('granted', true, 'token', lease.token);
    END IF;
    IF lease.favoured <> the_holder AND moment < lease.favoured_until THEN
        RETURN jsonb_build_object('granted', false, 'holder', lease.favoured,
            'token', 0, 'remaining', extract(epoch FROM lease.favoured_until - moment));
    END IF;
    UPDATE hustings.guard_lease
        SET holder = the_holder, life = the_life, token = token + 1,
            ttl = the_ttl, until = ending, favoured = NULL
        WHERE group_name = the_group;
    PERFORM hustings.guard_tell(the_group);
    RETURN jsonb_build_object('granted', true, 'token', lease.token + 1);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_renew(
    the_group text, the_holder text, the_life numeric, the_token bigint, the_ttl double precision
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    lease hustings.guard_lease;
    moment timestamptz;
BEGIN
    PERFORM hustings.guard_durably();
    SELECT * INTO lease FROM hustings.guard_lease WHERE group_name = the_group FOR UPDATE;
    moment := clock_timestamp();
    IF (lease.holder, lease.life, lease.token) = (the_holder, the_life, the_token)
        AND moment < lease.until
    THEN
        UPDATE hustings.guard_lease
            SET ttl = the_ttl, until = greatest(until, moment + make_interval(secs => the_ttl))
            WHERE group_name = the_group;
        RETURN to_jsonb(true);
    END IF;
    RETURN to_jsonb(false);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_release(
    the_group text, the_holder text, the_life numeric, the_token bigint, the_next text
) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hustings.guard_durably();
    UPDATE hustings.guard_lease
        SET holder = NULL, favoured = the_next,
            favoured_until = clock_timestamp() + make_interval(secs => ttl)
        WHERE group_name = the_group
            AND (holder, life, token) = (the_holder, the_life, the_token);
    IF FOUND THEN
        PERFORM hustings.guard_tell(the_group);
    END IF;
    RETURN to_jsonb(FOUND);
END $$;

CREATE OR REPLACE FUNCTION hustings.guard_look(the_group text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT jsonb_build_object('holder', holder, 'token', token,
            'remaining', extract(epoch FROM until - clock_timestamp()))
        FROM hustings.guard_lease WHERE group_name = the_group AND until > '-infinity'
    ), '{"holder": null, "token": 0, "remaining": 0}')
$$;
