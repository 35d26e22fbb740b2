//// const callTool
// expect: illegal IllegalIdentifier
const callTool = 1

//// function callTool
// expect: illegal IllegalIdentifier
function callTool() {}

//// parameter callTool
// expect: illegal IllegalIdentifier
return [1].map(callTool => callTool)

//// const getTool
// expect: illegal IllegalIdentifier
const getTool = 1

//// function getTool
// expect: illegal IllegalIdentifier
function getTool() {}

//// parameter getTool
// expect: illegal IllegalIdentifier
return [1].map(getTool => getTool)

//// const codecallContext
// expect: illegal IllegalIdentifier
const codecallContext = 1

//// function codecallContext
// expect: illegal IllegalIdentifier
function codecallContext() {}

//// parameter codecallContext
// expect: illegal IllegalIdentifier
return [1].map(codecallContext => codecallContext)

//// const __safe_parallel
// expect: illegal IllegalIdentifier
const __safe_parallel = 1

//// function __safe_parallel
// expect: illegal IllegalIdentifier
function __safe_parallel() {}

//// parameter __safe_parallel
// expect: illegal IllegalIdentifier
return [1].map(__safe_parallel => __safe_parallel)

//// assign callTool
// expect: illegal IllegalIdentifier
callTool = () => 1

//// assign Object
// expect: illegal IllegalIdentifier
Object = null

//// assign JSON
// expect: illegal IllegalIdentifier
JSON = {}

//// assign Promise
// expect: illegal IllegalIdentifier
Promise = class {}

//// update Math
// expect: illegal IllegalIdentifier
Math++

//// assign console
// expect: illegal IllegalIdentifier
console = {}

//// destructure into Array
// expect: illegal IllegalIdentifier
[Array] = [1]

//// reserved tick
// expect: illegal IllegalIdentifier
__ag_tick()

//// reserved tick assigned
// expect: illegal IllegalIdentifier
__ag_tick = () => 1

//// reserved declaration
// expect: illegal IllegalIdentifier
const __ag_x = 1

//// reserved safe
// expect: illegal IllegalIdentifier
__safe_for(() => 1)

//// reserved safe declaration
// expect: illegal IllegalIdentifier
let __safe_x = 1

//// reserved shorthand
// expect: illegal IllegalIdentifier
return { __ag_tick }

//// reserved destructured
// expect: illegal IllegalIdentifier
const { __ag_tick } = {}

//// reserved escape
// expect: illegal IllegalIdentifier
__\u0061g_tick()

//// reserved parameter
// expect: illegal IllegalIdentifier
return (__ag_a) => 1

//// reserved catch
// expect: illegal IllegalIdentifier
try {} catch (__ag_e) {}

//// reserved class
// expect: illegal IllegalIdentifier
class __safe_A {}

//// reserved main
// expect: illegal IllegalIdentifier
__ag_main()

