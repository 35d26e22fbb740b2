//// vm
// expect: illegal IllegalGlobalAccess
return typeof vm

//// Script
// expect: illegal IllegalGlobalAccess
return typeof Script

//// Isolate
// expect: illegal IllegalGlobalAccess
return typeof Isolate

//// __host_config__
// expect: illegal IllegalGlobalAccess
return typeof __host_config__

//// performance
// expect: illegal IllegalGlobalAccess
return typeof performance

//// Intl
// expect: illegal IllegalGlobalAccess
return typeof Intl

//// BroadcastChannel
// expect: illegal IllegalGlobalAccess
return typeof BroadcastChannel

//// undeclared
// expect: illegal IllegalGlobalAccess
return typeof undeclared

//// arguments
// expect: illegal IllegalGlobalAccess
return typeof arguments

//// crypto
// expect: illegal IllegalGlobalAccess
return typeof crypto

//// importMeta
// expect: illegal IllegalGlobalAccess
return typeof importMeta

//// std
// expect: illegal IllegalGlobalAccess
return typeof std

//// os
// expect: illegal IllegalGlobalAccess
return typeof os

