-- KEYS: old token, family, new token. ARGV: digest of old, digest of new, sealed successor, ttl ms, now ms, grace ms.
local old = redis.call('GET', KEYS[1])
if not old then return {'unknown'} end
local family = redis.call('GET', KEYS[2])
if not family then return {'unknown'} end
local left = redis.call('PTTL', KEYS[2])
local current, grant = string.sub(family, 1, 64), string.sub(family, 65)
if old == 'L' and current == ARGV[1] then
  redis.call('SET', KEYS[1], 'R' .. ARGV[5] .. ';' .. ARGV[2] .. ';' .. ARGV[3], 'PX', left)
  redis.call('SET', KEYS[2], ARGV[2] .. grant, 'PX', left)
  redis.call('SET', KEYS[3], 'L', 'PX', math.min(tonumber(ARGV[4]), left))
  return {'fresh'}
end
local at, successor, sealed = string.match(old, '^R(%d+);([^;]*);(.*)$')
if not at then return {'corrupt'} end
if tonumber(ARGV[5]) - tonumber(at) <= tonumber(ARGV[6]) and current == successor then
  return {'retried', sealed}
end
redis.call('DEL', KEYS[2])
return {'replayed'}
