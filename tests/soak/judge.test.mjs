// node --test tests/soak/judge.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";

import { recoveries, trend } from "./judge.mjs";

const CALM = 10;
/// Forty seconds with one fault from 10 s to 12 s, and p99 of `slow` ms in these seconds.
function run(slow, seconds = [], others = []) {
  const all = Array.from({ length: 40 }, (_, at) => ({ p99: seconds.includes(at) ? slow : CALM, others: others.includes(at) ? 1 : 0 }));
  return recoveries(all, [{ name: "it", from: 10, to: 12, end: 22 }], { cores: 2, recovery: 5 });
}

test("a fault that nobody notices is over at once", () => {
  assert.equal(run(500).found[0].after, 0);
});

test("p99 is back when it is within the bound for three seconds in a row", () => {
  assert.equal(run(500, [12, 13, 14]).found[0].after, 3);
  assert.equal(run(500, [12, 14, 16]).found[0].after, 5, "one good second between two bad ones is luck");
  assert.equal(run(500, [12, 13, 18, 19]).found[0].after, 2, "what comes after three good ones is something else");
  assert.equal(run(500, [12, 13, 18, 19]).found[0].late, 4, "and is counted");
});

test("p99 that does not come back is told", () => {
  const never = run(500, [12, 13, 14, 15, 16, 17, 18]);
  assert.deepEqual([never.found[0].after, never.alike], [7, true]);
  const far = run(500, [12, 13, 14, 15, 16, 17, 18, 19, 20, 21]);
  assert.equal(far.alike, false, "it lasts into seconds that should be calm");
});

test("a second that others took is not judged, and too many of them are no run", () => {
  assert.equal(run(500, [12], [12]).found[0].after, 0);
  assert.equal(run(500).valid, true);
  assert.equal(run(500, [], [20, 21, 22, 23, 24, 25, 26, 27, 28]).valid, false);
});

test("the trend is not moved by one peak", () => {
  const flat = Array.from({ length: 100 }, () => 50);
  assert.deepEqual(trend(flat.with(99, 500)), [50, 50]);
  const [from, to] = trend(Array.from({ length: 100 }, (_, at) => 50 + at));
  assert.deepEqual([from, to], [50, 149]);
});
