-- KEYS: code, family, refresh. ARGV: tombstone ms, family id, digest of the refresh token, digest for "no token".
local code = redis.call('GET', KEYS[1])
if not code then return {'unknown'} end
if string.sub(code, 1, 1) == 'U' then
  redis.call('DEL', KEYS[2])
  return {'replayed'}
end
local family_ms, refresh_ms, grant = string.match(code, '^L(%d+),(%d+);(.*)$')
if not grant then return {'corrupt'} end
redis.call('SET', KEYS[1], 'U' .. ARGV[2], 'PX', ARGV[1])
local current = ARGV[3]
if refresh_ms == '0' then current = ARGV[4] end
redis.call('SET', KEYS[2], current .. grant, 'PX', family_ms)
if refresh_ms ~= '0' then
  redis.call('SET', KEYS[3], 'L', 'PX', math.min(tonumber(refresh_ms), tonumber(family_ms)))
end
return {'fresh', grant}
