// What the seconds of a run say: whether p99 came back after each fault, and whether memory is flat.

/// A second in which others took more than this part of the machine is not judged.
const OTHERS = 0.1;
/// More such seconds than this part of the run, and nothing can be said of it.
const MOST_DISTURBED = 0.2;

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
    // Back for good: a second within the bound after which at most one in five is not.
    const settled = (from) => {
      const rest = Array.from({ length: last - from }, (_, at) => from + at);
      return !late(from) && rest.filter(late).length <= Math.ceil(rest.length / 5);
    };
    const back = Array.from({ length: last - first }, (_, at) => first + at).find(settled);
    return { name: fault.name, after: back === undefined ? Infinity : back - first };
  });
  const lost = seconds.filter((_, at) => disturbed(at)).length;
  return { base, bound, found, disturbed: lost, valid: calm.length > 0 && lost <= seconds.length * MOST_DISTURBED };
}
