"""What the Redis guard asks a server to do: each question is one script and so one step.

There is one hash for each group, without a time to live. Keys expire by the server's time of day,
which may be stepped. A full server evicts other keys first. No script reads a clock. Every write
leaves a mark that its writer has drawn. A member that has seen one mark for the time of the lease,
on its own clock, asks with that mark as `ended`. It takes the lease if the hash still has the mark.

Fields: `token`; `holder` and its `incarnation`; `ttl`, how long the last write counts, in
microseconds; `mark` of that write; `next`, the only member that may enter after a release; `floor`,
which all later tokens exceed; `identity`, a word that tells this hash from those of other servers;
`success`, a word about work that was done; and, where writes may be lost, `settled` and `max_ttl`:
see `ACQUIRE`. Tokens and marks stay text: a number of Lua has 53 bits.

Releases of the first format measured leases by the server's time of day, and kept their end in
`until`. Such a lease has no mark. Its end serves as the mark, because every renewal moves the end.
While a lease of this format is held, `until` lies so far ahead that a member of the old format
waits. Earlier releases called the incarnation `life`; a write removes that field, so that a member
of such a release does not take a new record for its own.
"""

from __future__ import annotations

GRANTED, BEHIND = 1, 2  # the first item of ACQUIRE's answers, beside 0

_COMMON = """
local FAR = '9007199254740991'
local function field(name) return redis.call('HGET', KEYS[1], name) end
local function number(name) return tonumber(field(name) or '0') end
local function put(name, value)
    if type(value) == 'number' then value = string.format('%.0f', value) end
    redis.call('HSET', KEYS[1], name, value)
end
local function held_by(holder, incarnation, token)
    return field('holder') == holder and field('incarnation') == incarnation
        and field('token') == token
end
local function mark_now()
    local till = field('until')
    if till and till ~= FAR then return 'until ' .. till end
    return field('mark') or ''
end
local function hold(ttl, mark)
    put('ttl', ttl)
    put('mark', mark)
    put('until', FAR)
    redis.call('HDEL', KEYS[1], 'next', 'next_until', 'life')
    redis.pcall('PUBLISH', KEYS[1], '')
end
-- A shorter ttl does not shorten an earlier promise. The member that wrote the last mark knows how
-- much time of it is left. For another member, the whole stored time may be left.
local function covering(ttl, mine, remains)
    if mark_now() == mine then return math.max(ttl, remains) end
    return math.max(ttl, number('ttl'))
end
"""

# A server that is not known to keep every write may come back without a lease that it granted, or
# another server may replace it. Such a server has a `run_id` that is not settled. A member settles
# a run when it has known the run, by its own clock, for the longest lease that it has heard of: all
# leases from before are over then. Until then only the last leader gets in, within its time
# (`leads`). A present holder may renew. Where INFO is forbidden this is not noticed.
#
# `known` is the highest token that the asking member has heard of. A server that is behind it
# grants nothing unless it is to be lifted. Answers begin with 0: held by another; 1: granted; 2:
# behind.
ACQUIRE = (
    _COMMON
    + """
local holder, incarnation, ttl, mark = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local ended, mine, remains = ARGV[5], ARGV[6], tonumber(ARGV[7])
local known, lift, leads, keeps = ARGV[8], ARGV[9] == '1', ARGV[10] == '1', ARGV[11] == '1'
local run_known, known_for, longest = ARGV[12], tonumber(ARGV[13]), tonumber(ARGV[14])
local function less(a, b) return #a < #b or (#a == #b and a < b) end
local token, last = field('token') or '0', field('floor') or '0'
if less(last, token) then last = token end
local is_over = ended ~= '' and mark_now() == ended
local is_same = field('holder') == holder and field('incarnation') == incarnation
local is_held = field('holder') and not is_same and not is_over
local is_behind = less(last, known) and not lift and not is_held
if not keeps then
    local info = redis.pcall('INFO', 'server')
    local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)')
    put('longest', math.max(number('longest'), ttl, longest))
    if run and run ~= field('settled') then
        local wait = number('longest')
        if run == run_known then wait = wait - known_for end
        if is_behind then return {2, last, run} end
        if wait > 0 and not leads then return {0, '0', '', run, string.format('%.0f', wait)} end
        put('settled', run)
    end
end
if is_held then return {0, token, field('holder'), mark_now(), field('ttl')} end
local successor = not field('holder') and not is_over and field('next')
if successor and successor ~= holder then return {0, '0', successor, mark_now(), field('ttl')} end
if is_behind then return {2, last, run_known} end
local lasting = ttl
if is_same then lasting = covering(ttl, mine, remains) end
if is_over or not is_same or less(token, known) then
    if less(last, known) then last = known end
    put('token', last)
    redis.call('HINCRBY', KEYS[1], 'token', 1)
end
put('holder', holder)
put('incarnation', incarnation)
hold(lasting, mark)
return {1, field('token'), string.format('%.0f', lasting)}
"""
)

RENEW = (
    _COMMON
    + """
if not held_by(ARGV[1], ARGV[2], ARGV[3]) then return '' end
local lasting = covering(tonumber(ARGV[4]), ARGV[6], tonumber(ARGV[7]))
hold(lasting, ARGV[5])
return string.format('%.0f', lasting)
"""
)

RELEASE = (
    _COMMON
    + """
local mark, successor = ARGV[4], ARGV[5]
if not held_by(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
redis.call('HDEL', KEYS[1], 'holder', 'incarnation', 'until')
put('mark', mark)
if successor then put('next', successor) end
redis.pcall('PUBLISH', KEYS[1], '')
return 1
"""
)

LOOK = (
    _COMMON
    + """
return {field('token') or '0', field('holder'), mark_now(), field('ttl') or '0'}
"""
)

# For an operator: the present holder keeps its token, the next one gets one above this number.
RECOVER = (
    _COMMON
    + """
if number('floor') < tonumber(ARGV[1]) then put('floor', ARGV[1]) end
return 1
"""
)

WORD = (
    _COMMON
    + """
if ARGV[3] == '1' or not field(ARGV[1]) then put(ARGV[1], ARGV[2]) end
return field(ARGV[1])
"""
)

# The run of a server that may lose writes; empty where INFO is forbidden.
RUN = """
local info = redis.pcall('INFO', 'server')
return type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
"""
