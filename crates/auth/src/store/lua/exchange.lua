-- KEYS: code, family, refresh, counters. ARGV: tombstone ms, family id, digest of the refresh token, digest for "no token",
-- prefix of all names, window ms of the counters, the most of each counter.
-- The records that end a grant are named by the code itself, so they cannot be among KEYS; they share the prefix, and with it the slot.
for i = 4, #KEYS do
  local count = redis.call('INCR', KEYS[i])
  if count == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[6]) end
  if count > tonumber(ARGV[3 + i]) then
    local left = redis.call('PTTL', KEYS[i])
    if left < 0 then
      redis.call('PEXPIRE', KEYS[i], ARGV[6])
      left = tonumber(ARGV[6])
    end
    return {'limited', tostring(left)}
  end
end
local code = redis.call('GET', KEYS[1])
if not code then return {'unknown'} end
if string.sub(code, 1, 1) == 'U' then
  redis.call('DEL', KEYS[2])
  return {'replayed'}
end
local family_ms, refresh_ms, names, grant = string.match(code, '^L(%d+),(%d+),([^;]*);(.*)$')
if not grant then return {'corrupt'} end
redis.call('SET', KEYS[1], 'U' .. ARGV[2], 'PX', ARGV[1])
local current = ARGV[3]
if refresh_ms == '0' then current = ARGV[4] end
redis.call('SET', KEYS[2], current .. grant, 'PX', family_ms)
if refresh_ms ~= '0' then
  redis.call('SET', KEYS[3], 'L', 'PX', math.min(tonumber(refresh_ms), tonumber(family_ms)))
end
local watched = {}
for name in string.gmatch(names, '%S+') do watched[#watched + 1] = ARGV[5] .. name end
local answer = {'fresh', grant}
if #watched > 0 then
  for _, value in ipairs(redis.call('MGET', unpack(watched))) do
    if value then answer[#answer + 1] = value end
  end
end
return answer
