//// name from a loop
// expect: safe
let n = ''; for (const p of ['code', 'call:', 'execute']) n += p; return callTool(n, {})

//// name from the context
// expect: safe
return callTool(codecallContext.name, {})

//// self tool
// expect: safe
return callTool('self', {})

//// caught self
// expect: safe
try { await callTool('self', {}) } catch { return 'caught' }

