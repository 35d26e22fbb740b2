//// the default export is a function
// expect: ok 7
export default async () => { await null; return 7 }

//// it has a name
// expect: ok 8
export default async function main() { return helper(7) }
function helper(n) { return n + 1 }

//// it has no name
// expect: ok 9
const n = 8;
export default async function () { return n + 1 }

//// it stands in front of what it uses
// expect: ok [1, 2]
export default function main() { return rows }
const rows = [1, 2];

//// it is called by the script
// expect: ok 1
let n = 0;
export default async function main() { n += 1; return n }
main();

//// it calls itself
// expect: ok 3
let n = 0;
export default async function main() { n += 1; return n < 3 ? await main() : n }

//// it is a value
// expect: ok 1
export default 1

//// of a call
// expect: ok {"n": 2}
const make = (n) => ({ n });
export default make(2);

//// it names a function
// expect: ok 4
async function main() { return 4 }
export default main;

//// or one that is a constant
// expect: ok 5
const main = async () => 5;
export default main

//// parameters that every script has
// expect: ok ["echo", {"a": 1}]
export default async function main({ callTool, codecallContext }) {
  const tool = await getTool('echo');
  return [tool.name, await callTool('echo', { a: 1 })];
}

//// a function of them
// expect: ok {"a": 1}
async ({ callTool, getTool }) => { return await callTool('echo', { a: 1 }) }

//// one by one
// expect: ok {"a": 1}
(async function (callTool, getTool) { return await callTool('echo', { a: 1 }) })

//// with types
// expect: ok {"a": 1}
type Tools = { callTool: (name: string, input: object) => Promise<unknown> };
export default (async ({ callTool }: Tools): Promise<unknown> => callTool('echo', { a: 1 }))

//// other parameters are missing
// expect: ok null
export default async function main(n) { return n }

//// a generator is not called
// expect: ok null
export default async function* main() { yield 1 }

//// a class is no script
// expect: illegal IllegalModuleAccess
export default class A {}

//// two exports
// expect: illegal IllegalModuleAccess
export const a = 1;
export default a

//// an import beside it
// expect: illegal IllegalModuleAccess
import x from 'x';
export default async () => x

//// a value that more follows
// expect: illegal IllegalModuleAccess
export default 1;
const a = 2;

//// a script that returns
// expect: illegal IllegalModuleAccess
export default async () => 1;
return 2

//// what it does is checked
// expect: illegal IllegalBuiltinAccess
export default async () => eval('1')

//// parameters with defaults stay
// expect: illegal IllegalIdentifier
async ({ callTool = 1 }) => callTool

//// parameters with other names stay
// expect: illegal IllegalIdentifier
async ({ callTool, extra }) => callTool

//// other names for them stay
// expect: ok null
async ({ callTool: f }) => { return 1 }

//// they cannot be set
// expect: illegal IllegalIdentifier
async ({ callTool }) => { callTool = 1 }

//// main is called in front
// expect: ok 5
main();
async function main() { return 5 }

//// main is waited for
// expect: ok 5
async function main() { return 5 }
await main()

//// an iife without a semicolon
// expect: ok 5
(async () => { return 5 })()

//// module.exports
// expect: illegal IllegalModuleAccess
module.exports = async () => { return 5 }

//// what it calls is checked
// expect: illegal SelfReferenceBlocked
export default async ({ callTool }) => callTool('codecall:execute', {})

//// its default may not be reached by another name
// expect: illegal IllegalIdentifier
export default async function ({ callTool: getTool }) { return 1 }

//// a function without a body
// expect: illegal IllegalModuleAccess
const n = 8;
export default async function ()

//// a name of a function without a body
// expect: runtime ReferenceError
function main(): void;
export default main
