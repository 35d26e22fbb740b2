//// eval
// expect: illegal IllegalBuiltinAccess
return eval('1 + 1')
