//// assign a member
// expect: safe
codecallContext.x = 1

//// assign it
// expect: safe
codecallContext = {}

//// delete a member
// expect: safe
delete codecallContext.a

//// define a member
// expect: safe
Object.defineProperty(codecallContext, 'x', { value: 1 })

//// assign
// expect: safe
Object.assign(codecallContext, { x: 1 })

//// push to a list
// expect: safe
(codecallContext.list ?? Object.freeze([])).push(1)

//// frozen
// expect: safe
return Object.isFrozen(codecallContext)

//// spread copy
// expect: safe
const c = { ...codecallContext, x: 1 }; c.y = 2; return c

//// destructured
// expect: safe
const { a = 1 } = codecallContext; return a

//// increment
// expect: safe
codecallContext.n++

//// assign in destructuring
// expect: safe
({ a: codecallContext.a } = { a: 1 })

//// for of into it
// expect: safe
for (codecallContext.x of [1]) ;

