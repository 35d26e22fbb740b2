//// html open comment
// expect: safe
return 1 <!-- x

//// html close comment
// expect: syntax 2:3
x()
--> y

//// html comment hiding a template
// expect: syntax 1:8
a <!-- `
`
eval('1')

//// hashbang
// expect: illegal IllegalSyntax
#!/usr/bin/node
return 1

//// with
// expect: illegal IllegalSyntax
with ({}) { x }

//// debugger
// expect: illegal IllegalSyntax
debugger; return 1

//// new.target
// expect: illegal IllegalSyntax
function f() { return new.target }

//// decorator
// expect: illegal IllegalSyntax
@d class A {}

//// using
// expect: illegal IllegalSyntax
using x = y

//// await using
// expect: illegal IllegalSyntax
await using x = y

//// accessor
// expect: illegal IllegalSyntax
class A { accessor x = 1 }

//// enum
// expect: illegal IllegalSyntax
enum A { B }
return A.B

//// const enum
// expect: illegal IllegalSyntax
const enum A { B }
return A.B

//// namespace
// expect: illegal IllegalSyntax
namespace N { export const a = 1 }

//// parameter property
// expect: illegal IllegalSyntax
class A { constructor(private x: number) {} }

//// typed decorator
// expect: illegal IllegalSyntax
@d class A { x: number = 1 }

//// slash behind a type
// expect: safe
let x = y as A<B> /'/ 2 //'

//// import equals
// expect: illegal IllegalModuleAccess
import fs = require('fs')

