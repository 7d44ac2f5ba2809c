"""What the Redis guard asks a server to do, each question one script and so one step.

One hash for each group, without a time to live, so that what the server evicts when it is full are
other keys first. Its fields: `token`; `holder` and `life`; `until`, in microseconds of the server's
clock; `ttl`, asked for last; `next` and `next_until`, who alone is let in after a release; and,
where writes may be lost, `run`, `longest` and `from`: see `ACQUIRE`.
"""

from __future__ import annotations

_NOW = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function field(name) return redis.call('HGET', KEYS[1], name) end
local function number(name) return tonumber(field(name) or '0') end
local function put(name, value)
    if type(value) == 'number' then value = string.format('%.0f', value) end
    redis.call('HSET', KEYS[1], name, value)
end
local function held_by(holder, life, token)
    return field('holder') == holder and field('life') == life and field('token') == token
end
local function tell() redis.pcall('PUBLISH', KEYS[1], '') end
"""

# A server that is not known to keep every write may come back, or be replaced by one, that has
# forgotten a lease. It shows by another `run_id` than the one noted, or by none noted and a server
# younger than a lease. Then nobody is let in until the longest lease seen would be over; whoever
# still holds one may renew it. Where INFO is forbidden this is not noticed.
ACQUIRE = (
    _NOW
    + """
local holder, life, ttl, keeps = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
if keeps == '0' then
    local info = redis.pcall('INFO', 'server')
    local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)')
    if run and run ~= field('run') then
        local wait = math.max(number('longest'), ttl)
        if not field('token') then
            wait = wait - (tonumber(string.match(info, 'uptime_in_seconds:(%d+)')) - 1) * 1000000
        end
        put('run', run)
        put('from', now + math.max(wait, 0))
    end
    put('longest', math.max(number('longest'), ttl))
    if now < number('from') then
        return {0, 0, '', string.format('%.0f', number('from') - now)}
    end
end
local left = number('until') - now
if field('holder') and left > 0 then
    if field('holder') ~= holder or field('life') ~= life then
        return {0, number('token'), field('holder'), string.format('%.0f', left)}
    end
    put('ttl', ttl)
    put('until', now + math.max(left, ttl))
    return {1, number('token')}
end
left = number('next_until') - now
if field('next') and left > 0 and field('next') ~= holder then
    return {0, 0, field('next'), string.format('%.0f', left)}
end
redis.call('HDEL', KEYS[1], 'next', 'next_until')
put('holder', holder)
put('life', life)
put('ttl', ttl)
put('until', now + ttl)
local token = redis.call('HINCRBY', KEYS[1], 'token', 1)
tell()
return {1, token}
"""
)

RENEW = (
    _NOW
    + """
local ttl = tonumber(ARGV[4])
local left = number('until') - now
if not held_by(ARGV[1], ARGV[2], ARGV[3]) or left <= 0 then return 0 end
put('ttl', ttl)
put('until', now + math.max(left, ttl))
return 1
"""
)

RELEASE = (
    _NOW
    + """
local heir = ARGV[4]
if not held_by(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
redis.call('HDEL', KEYS[1], 'holder', 'life', 'until')
if heir then
    put('next', heir)
    put('next_until', now + number('ttl'))
end
tell()
return 1
"""
)

LOOK = (
    _NOW
    + """
local left = number('until') - now
if not field('holder') or left <= 0 then return {number('token'), false, '0'} end
return {number('token'), field('holder'), string.format('%.0f', left)}
"""
)
