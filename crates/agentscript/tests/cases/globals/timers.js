//// setTimeout
// expect: illegal IllegalTimer
setTimeout(() => 1, 0)

//// setTimeout alias
// expect: illegal IllegalTimer
const t = setTimeout; await new Promise(r => t(r, 10))

//// setInterval
// expect: illegal IllegalTimer
setInterval(() => 1, 0)

//// setInterval alias
// expect: illegal IllegalTimer
const t = setInterval; await new Promise(r => t(r, 10))

//// setImmediate
// expect: illegal IllegalTimer
setImmediate(() => 1, 0)

//// setImmediate alias
// expect: illegal IllegalTimer
const t = setImmediate; await new Promise(r => t(r, 10))

//// queueMicrotask
// expect: illegal IllegalTimer
queueMicrotask(() => 1, 0)

//// queueMicrotask alias
// expect: illegal IllegalTimer
const t = queueMicrotask; await new Promise(r => t(r, 10))

//// requestAnimationFrame
// expect: illegal IllegalTimer
requestAnimationFrame(() => 1, 0)

//// requestAnimationFrame alias
// expect: illegal IllegalTimer
const t = requestAnimationFrame; await new Promise(r => t(r, 10))

//// clearTimeout
// expect: illegal IllegalTimer
clearTimeout(() => 1, 0)

//// clearTimeout alias
// expect: illegal IllegalTimer
const t = clearTimeout; await new Promise(r => t(r, 10))

//// clearInterval
// expect: illegal IllegalTimer
clearInterval(() => 1, 0)

//// clearInterval alias
// expect: illegal IllegalTimer
const t = clearInterval; await new Promise(r => t(r, 10))

