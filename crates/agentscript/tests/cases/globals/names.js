//// process member
// expect: illegal IllegalGlobalAccess
return process.env

//// typeof process
// expect: illegal IllegalGlobalAccess
return typeof process

//// global member
// expect: illegal IllegalGlobalAccess
return global.env

//// typeof global
// expect: illegal IllegalGlobalAccess
return typeof global

//// globalThis member
// expect: illegal IllegalGlobalAccess
return globalThis.env

//// typeof globalThis
// expect: illegal IllegalGlobalAccess
return typeof globalThis

//// window member
// expect: illegal IllegalGlobalAccess
return window.env

//// typeof window
// expect: illegal IllegalGlobalAccess
return typeof window

//// self member
// expect: illegal IllegalGlobalAccess
return self.env

//// typeof self
// expect: illegal IllegalGlobalAccess
return typeof self

//// Deno member
// expect: illegal IllegalGlobalAccess
return Deno.env

//// typeof Deno
// expect: illegal IllegalGlobalAccess
return typeof Deno

//// Bun member
// expect: illegal IllegalGlobalAccess
return Bun.env

//// typeof Bun
// expect: illegal IllegalGlobalAccess
return typeof Bun

//// document member
// expect: illegal IllegalGlobalAccess
return document.env

//// typeof document
// expect: illegal IllegalGlobalAccess
return typeof document

//// fetch member
// expect: illegal IllegalGlobalAccess
return fetch.env

//// typeof fetch
// expect: illegal IllegalGlobalAccess
return typeof fetch

//// XMLHttpRequest member
// expect: illegal IllegalGlobalAccess
return XMLHttpRequest.env

//// typeof XMLHttpRequest
// expect: illegal IllegalGlobalAccess
return typeof XMLHttpRequest

//// WebSocket member
// expect: illegal IllegalGlobalAccess
return WebSocket.env

//// typeof WebSocket
// expect: illegal IllegalGlobalAccess
return typeof WebSocket

//// Buffer member
// expect: illegal IllegalGlobalAccess
return Buffer.env

//// typeof Buffer
// expect: illegal IllegalGlobalAccess
return typeof Buffer

//// navigator member
// expect: illegal IllegalGlobalAccess
return navigator.env

//// typeof navigator
// expect: illegal IllegalGlobalAccess
return typeof navigator

