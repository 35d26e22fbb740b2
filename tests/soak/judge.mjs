// What the seconds of a run say: whether p99 came back after each fault, and whether memory is flat.

/// A second in which others took more than this part of the machine is not judged.
const OTHERS = 0.1;
/// More such seconds than this part of the run, and nothing can be said of it.
const MOST_DISTURBED = 0.2;
/// Calm seconds are alike when nine of ten are below this many times their median: else what a fault did lasted into them, or the load was too
/// much, and a bound that they give says nothing.
const ALIKE = 5;
/// Seconds in a row that p99 must be within the bound to be back: one may be luck. What comes after them is not the fault's doing.
const BACK = 3;

export const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const ascending = (all) => [...all].sort((a, b) => a - b);
export const median = (all) => quantile(ascending(all), 0.5);
export const p99 = (times) => quantile(ascending(times), 0.99);

/// First and last point of the line that fits `all` best (Theil and Sen: the median of all slopes).
export function trend(all) {
  const slopes = [];
  for (let a = 0; a < all.length; a++) for (let b = a + 1; b < all.length; b++) slopes.push((all[b] - all[a]) / (b - a));
  const slope = slopes.length ? median(slopes) : 0;
  const start = median(all.map((value, at) => value - slope * at));
  return [start, start + slope * (all.length - 1)];
}

/// When p99 was back after each fault. `seconds` have `{p99, others}`; faults have `{name, from, to, end}` in seconds: `end` is
/// where the next one begins.
export function recoveries(seconds, faults, { cores, recovery }) {
  const disturbed = (at) => (seconds[at]?.others ?? 0) > OTHERS * cores;
  const troubled = (at) => faults.some((fault) => at + 1 > fault.from && at < fault.to + recovery);
  // The usual: seconds in which no fault was under way, or over for less than the time to recover.
  const calm = ascending(seconds.filter((_, at) => at > 1 && !troubled(at) && !disturbed(at)).map((one) => one.p99));
  const base = quantile(calm, 0.5) ?? Infinity;
  // A second of some hundred requests has a p99 that jumps: nine of ten calm seconds say how far.
  const bound = Math.max(quantile(calm, 0.9) ?? Infinity, base * 1.5, base + 5);
  const found = faults.map((fault) => {
    const first = Math.floor(fault.to);
    const last = Math.max(first + 1, Math.min(seconds.length, Math.floor(fault.end)));
    // The last fault of a short run may end after its last second.
    const late = (at) => at < seconds.length && !disturbed(at) && seconds[at].p99 > bound;
    const from = Array.from({ length: last - first }, (_, at) => first + at);
    const isBack = (at) => Array.from({ length: Math.min(BACK, last - at) }, (_, more) => at + more).every((one) => !late(one));
    const back = from.find(isBack);
    return { name: fault.name, after: back === undefined ? Infinity : back - first, late: from.filter(late).length };
  });
  const lost = seconds.filter((_, at) => disturbed(at)).length;
  const slow = calm.filter((p99) => p99 > bound).length;
  const alike = bound <= Math.max(ALIKE * base, base + 20);
  return { base, bound, found, alike, disturbed: lost, calm: { seconds: calm.length, late: slow }, valid: calm.length > 0 && lost <= seconds.length * MOST_DISTURBED };
}
