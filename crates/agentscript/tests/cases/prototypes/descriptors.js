//// defineProperty
// expect: illegal IllegalPrototypeAccess
return Object.defineProperty({}, 'x', { value: 1 })

//// defineProperties
// expect: illegal IllegalPrototypeAccess
return Object.defineProperties({}, {})

//// descriptor
// expect: illegal IllegalPrototypeAccess
return Object.getOwnPropertyDescriptor({}, 'a')

//// descriptors
// expect: illegal IllegalPrototypeAccess
return Object.getOwnPropertyDescriptors([])

//// destructured
// expect: illegal IllegalPrototypeAccess
const { defineProperty: d } = Object; return d({}, 'x', {})

//// computed
// expect: illegal IllegalPrototypeAccess
return Object['define' + 'Property']({}, 'x', {})

//// assembled name
// expect: illegal IllegalPrototypeAccess
const c = 'con' + 'struc' + 'tor'; return c

//// assembled name that is only compared
// expect: ok ["length"]
return ['constructor', 'length', '__proto__'].filter((k) => k !== "constr" + "uctor" && ('__pro' + 'to__') !== k)

//// assembled name beside a comparison
// expect: illegal IllegalPrototypeAccess
return [][(1 === 1 ? 'con' + 'structor' : '')]

//// assembled name inside a comparison
// expect: illegal IllegalPrototypeAccess
return []['con' + 'structor'] === 1

//// assembled proto
// expect: illegal IllegalPrototypeAccess
return ['__pro' + 'to__']

