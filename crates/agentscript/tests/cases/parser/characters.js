//// right-to-left override
// expect: illegal IllegalCharacter
const a = 'x‮y'; return a

//// zero width space in a name
// expect: illegal IllegalCharacter
const a​b = 1

//// byte order mark
// expect: illegal IllegalCharacter
﻿return 1

//// byte order mark inside
// expect: illegal IllegalCharacter
return 1﻿

//// zero width joiner in a name
// expect: illegal IllegalCharacter
const a‍b = 1

//// line separator
// expect: illegal IllegalCharacter
return 1 

//// paragraph separator in a comment
// expect: illegal IllegalCharacter
// a  return 2
return 1

//// line separator in a string
// expect: illegal IllegalCharacter
return 'a b'

//// left-to-right isolate
// expect: illegal IllegalCharacter
/* ⁦ */ return 1

//// soft hyphen
// expect: illegal IllegalCharacter
return 'a­b'

//// tag characters
// expect: illegal IllegalCharacter
return '󠁁'

//// vertical tab
// expect: illegal IllegalCharacter
return1

//// form feed
// expect: illegal IllegalCharacter
return1

//// next line
// expect: illegal IllegalCharacter
return 1

//// hangul filler as a name
// expect: illegal IllegalCharacter
const ㅤ = 1

//// word joiner
// expect: illegal IllegalCharacter
return 'a⁠b'

//// delete character
// expect: illegal IllegalCharacter
return ''

//// escape character
// expect: illegal IllegalCharacter
return '[31m'

//// mongolian separator
// expect: illegal IllegalCharacter
return '᠎'

//// right-to-left mark in a template
// expect: illegal IllegalCharacter
return `‏`

