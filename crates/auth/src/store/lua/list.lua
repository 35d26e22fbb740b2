-- KEYS[1] any name with the prefix, for the slot; ARGV[1] cursor, ARGV[2] pattern. Returns the next cursor, then the values found.
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
local answer = { page[1] }
for _, name in ipairs(page[2]) do
    local value = redis.call('GET', name)
    if value then
        answer[#answer + 1] = value
    end
end
return answer
