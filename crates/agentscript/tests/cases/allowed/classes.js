//// class
// expect: ok 1
class A { constructor(x) { this.x = x } } return new A(1).x

//// fields
// expect: ok 1
class A { x = 1 } return new A().x

//// private fields
// expect: ok 2
class A { #x = 2; get() { return this.#x } } return new A().get()

//// static
// expect: ok 1
class A { static x = 1 } return A.x

//// static block
// expect: ok 3
class A { static x; static { this.x = 3 } } return A.x

//// inheritance
// expect: ok "ab"
class A { m() { return 'a' } } class B extends A { m() { return super.m() + 'b' } } return new B().m()

//// super call
// expect: ok 1
class A { constructor(x) { this.x = x } } class B extends A { constructor() { super(1) } } return new B().x

//// accessors
// expect: ok 2
class A { get v() { return 2 } } return new A().v

//// own error
// expect: ok "E"
class E extends Error { constructor(m) { super(m); this.name = 'E' } } try { throw new E('x') } catch (e) { return e.name }

//// class expression
// expect: ok 1
const A = class { x = 1 }; return new A().x

//// iterator
// expect: ok [1, 2]
class A { *[Symbol.iterator]() { yield 1; yield 2 } } return [...new A()]

//// toString
// expect: ok "A!"
class A { toString() { return 'A!' } } return `${new A()}`

