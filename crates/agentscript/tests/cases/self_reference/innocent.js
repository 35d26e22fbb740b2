//// a filter
// expect: safe
return ['codecall:execute', 'crm:get'].filter(n => !n.startsWith('codecall:'))

//// a message
// expect: safe
return 'use codecall:execute'

//// an input
// expect: safe
return callTool('echo', { q: 'codecall:execute' })

