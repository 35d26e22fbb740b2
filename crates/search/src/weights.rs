//! The numbers of the ranking, in one place.
//!
//! How they were chosen is in `docs/adr/search-ranking.md`.

use crate::fields::FIELDS;

/// How one field counts.
#[derive(Debug, Clone, Copy)]
pub struct FieldWeight {
    /// What one occurrence is worth.
    pub weight: f32,
    /// How much a long field is marked down, 0 (not at all) to 1 (in proportion).
    pub length: f32,
    /// The length, in words, at which a field is neither marked up nor down. Fixed, not the corpus mean, so that
    /// a document scores the same whatever else is indexed.
    pub pivot: f32,
}

/// Constants of the ranking. [`Weights::default`] is what was measured best.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Weights {
    /// Name, description, parameter names, parameter texts, enum values, app.
    pub fields: [FieldWeight; FIELDS],
    /// Saturation: how soon repeating a word stops helping.
    pub k1: f32,
    /// Bonus for covering the whole name of the tool.
    pub coverage: f32,
    /// Experiments.
    pub x: [f32; 16],
}

impl Default for Weights {
    fn default() -> Self {
        let field = |weight, length, pivot| FieldWeight { weight, length, pivot };
        Self {
            fields: [
                field(2.0, 0.6, 3.0),
                field(1.0, 0.75, 16.0),
                field(1.0, 0.5, 5.0),
                field(0.3, 0.5, 40.0),
                field(0.4, 0.7, 5.0),
                field(0.25, 0.3, 2.0),
            ],
            k1: 0.9,
            coverage: 0.5,
            x: [0.0; 16],
        }
    }
}
