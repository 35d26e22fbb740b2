//! Matchers of durations: percentiles with limits, and with a baseline that is kept in a file.

use serde_json::{Map, Value, json};

use super::{
    arguments::{Kept, KeptFile, PERCENTILES},
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::RespondsWithin,
    subject::Subject,
};

/// The percentiles that are compared with a baseline.
const COMPARED: [&str; 2] = ["p50", "p95"];

/// Differences from a baseline that are never a failure, in milliseconds: below it is the noise of a machine.
const NOISE_MS: f64 = 5.0;

/// Fewest durations that a baseline is made of or compared with.
const MIN_SAMPLES: usize = 10;

/// The smallest duration that `percent` of all do not exceed. `sorted` is not empty.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the length")]
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

impl Match for RespondsWithin {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let mut durations = match subject {
            Subject::ToolResult(result) => vec![result.duration_ms],
            Subject::Recorded(list) => list.durations_ms.clone(),
            other => return Err(other.unsupported("a tool call, or a list with durations")),
        };
        if durations.is_empty() {
            return Err(subject.unsupported("at least one duration"));
        }
        durations.sort_by(f64::total_cmp);
        let count = durations.len();
        for (name, percent, limit) in &self.0.limits {
            let found = percentile(&durations, *percent);
            if found > *limit {
                return Err(Mismatch::new(
                    format!("{name} of {limit} ms at most"),
                    format!("{found:.1} ms, of {count} durations{}", summary(&durations)),
                ));
            }
        }
        match &self.0.baseline {
            Some(kept) => self.compare(kept, &durations),
            None => Ok(()),
        }
    }

    fn is_of_durations(&self) -> bool {
        true
    }
}

impl RespondsWithin {
    fn compare(&self, kept: &Kept, durations: &[f64]) -> Outcome {
        if durations.len() < MIN_SAMPLES {
            let mut mismatch = Mismatch::new(
                format!("{MIN_SAMPLES} durations or more, to compare with a baseline"),
                durations.len().to_string(),
            );
            mismatch.unsupported = true;
            return Err(mismatch);
        }
        let measured: Map<String, Value> = COMPARED
            .iter()
            .filter_map(|name| {
                let (_, percent) = PERCENTILES.iter().find(|(known, _)| known == name)?;
                let ms = (percentile(durations, *percent) * 1e3).round() / 1e3;
                Some(((*name).to_owned(), json!(ms)))
            })
            .collect();
        let mut written = measured.clone();
        written.insert("durations".into(), durations.len().into());
        let KeptFile::Read(baseline) = kept.read_or_write("the latency baseline", &Value::Object(written))?
        else {
            return Ok(());
        };
        let tolerance = self.0.tolerance.unwrap_or(50.0);
        for name in COMPARED {
            let Some(base) = baseline[name].as_f64() else {
                return Err(kept.unusable(&format!("it has no number `{name}`")));
            };
            let found = measured[name].as_f64().unwrap_or_default();
            if found > base * (1.0 + tolerance / 100.0) && found > base + NOISE_MS {
                return Err(Mismatch::new(
                    format!("{name} of {base} ms as in {kept}, and {tolerance} % more at most"),
                    format!("{found} ms{}", summary(durations)),
                )
                .hint(Some(format!("when that is right, {}", kept.how_to_update()))));
            }
        }
        Ok(())
    }
}

fn summary(sorted: &[f64]) -> String {
    let all: Vec<String> = PERCENTILES
        .iter()
        .map(|(name, percent)| format!("{name} {:.1}", percentile(sorted, *percent)))
        .collect();
    format!(" ({})", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        let found: Vec<f64> = PERCENTILES.iter().map(|(_, percent)| percentile(&sorted, *percent)).collect();
        assert_eq!(found, [10.0, 15.0, 18.0, 19.0, 20.0, 20.0]);
        assert_eq!(percentile(&[7.0], 50.0), 7.0);
    }
}
