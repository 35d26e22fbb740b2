//// require
// expect: illegal IllegalModuleAccess
return require('fs')

//// module
// expect: illegal IllegalModuleAccess
return module('fs')

//// exports
// expect: illegal IllegalModuleAccess
return exports('fs')

//// importScripts
// expect: illegal IllegalModuleAccess
return importScripts('fs')

//// dynamic import
// expect: illegal IllegalModuleAccess
return await import('node:fs')

//// import of data
// expect: illegal IllegalModuleAccess
return import('data:text/javascript,1')

//// import with a template
// expect: illegal IllegalModuleAccess
return import(`f${'s'}`)

//// static import
// expect: illegal IllegalModuleAccess
import fs from 'fs'
return fs

//// named import
// expect: illegal IllegalModuleAccess
import { a } from 'b'

//// side effect import
// expect: illegal IllegalModuleAccess
import 'fs'

//// export
// expect: illegal IllegalModuleAccess
export const a = 1

//// export default with a name
// expect: illegal IllegalModuleAccess
export { a as default }; const a = 1

//// import.meta
// expect: illegal IllegalModuleAccess
return import.meta.url

//// module.exports
// expect: illegal IllegalModuleAccess
module.exports = 1

//// require.resolve
// expect: illegal IllegalModuleAccess
return require.resolve('fs')

//// require in a function
// expect: illegal IllegalModuleAccess
const f = () => require('child_process').execSync('id'); return f()

//// escaped require
// expect: illegal IllegalModuleAccess
return r\u0065quire('fs')

//// export list
// expect: illegal IllegalModuleAccess
const a = 1
export { a }

//// export from
// expect: illegal IllegalModuleAccess
export * from 'fs'

