//// readonly field
// expect: ok {"x":1}
return new (class A{readonly x=1})

//// public field
// expect: ok {"x":1}
class A{public x=1} return new A

//// private method
// expect: ok 1
class A{private f(){return 1} g(){return this.f()}} return new A().g()

//// private static field
// expect: ok 1
class A{private static x=1; static y(){return A.x}} return A.y()

//// private constructor
// expect: ok {"x":1}
class A{x=1; private constructor(){}} return new A

//// static readonly field
// expect: ok 1
class A{static readonly x=1} return A.x

//// protected getter
// expect: ok 2
class A{protected get a(){return 2}} return new A().a

//// override method
// expect: ok 2
class B{f(){return 1}} class A extends B{override f(){return 2}} return new A().f()

//// override field
// expect: ok "E"
class A extends Error{override name='E'} return new A().name

//// optional method
// expect: ok 3
class A{f?(){return 3}} return new A().f()

//// optional field
// expect: ok {"x":1}
class A{x?=1} return new A

//// declared field
// expect: ok {"y":1}
class A{declare x; y=1} return new A

//// modifiers as names
// expect: ok [1,2,3,4]
class A{readonly=1; static=2; declare=3; private(){return 4}} const a=new A; return [a.readonly,a.static,a.declare,a.private()]

//// parameter property
// expect: illegal IllegalSyntax
class A{constructor(readonly x){}} return new A(1)
