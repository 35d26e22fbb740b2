//// context assign
// expect: runtime TypeError
codecallContext.x = 1; return 1

//// context reassign
// expect: runtime TypeError
codecallContext = {}; return 1

//// context assign helper
// expect: runtime TypeError
Object.assign(codecallContext, { x: 1 }); return 1

//// context delete computed
// expect: ok 1
const k = 'user'; delete codecallContext[k]; return 1

//// context setPrototypeOf
// expect: illegal IllegalPrototypeAccess
Object.setPrototypeOf(codecallContext, null)

//// context shadow var
// expect: illegal IllegalIdentifier
var codecallContext = 1; return 1

//// context shadow param
// expect: illegal IllegalIdentifier
return ((codecallContext) => codecallContext)(5)

//// context shadow class
// expect: illegal IllegalIdentifier
class codecallContext { } return 1
