//// html open comment
// expect: illegal IllegalSyntax
return 1 <!-- x

//// html close comment
// expect: illegal IllegalSyntax
x()
--> y

//// html comment hiding a template
// expect: illegal IllegalSyntax
a <!-- `
evil()
`

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

//// slash behind a block
// expect: illegal IllegalSyntax
{} /'/ ; x // '/

//// slash behind a type
// expect: illegal IllegalSyntax
let x = y as A<B> /'/ 2 //'/

//// slash behind a greater sign
// expect: illegal IllegalSyntax
return a > /x/

//// slash behind void
// expect: illegal IllegalSyntax
return void /'/ //'

//// import equals
// expect: illegal IllegalModuleAccess
import fs = require('fs')

