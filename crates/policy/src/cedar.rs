//! The parts of Cedar that the crate uses: nothing else here names `cedar_policy_core`.
//!
//! `cedar-policy-core` makes no promise of a stable interface; the version is pinned, and an update changes this list and little more.

pub(crate) use cedar_policy_core::{
    ast::{
        BinaryOp, Context, Effect, Eid, Entity, EntityType, EntityUID, EntityUIDEntry, Expr, ExprKind,
        Literal, Name, PartialValue, Policy, PolicySet, PrincipalOrResourceConstraint, Request,
        RestrictedExpr, SlotEnv, UnaryOp, Unknown, Value, ValueKind, Var,
    },
    entities::{Entities, NoEntitiesSchema, TCComputation},
    evaluator::{EvaluationError, Evaluator, RestrictedEvaluator},
    extensions::Extensions,
    parser::parse_policyset,
    validator::{ValidationMode, Validator, ValidatorSchema},
};

/// An entity of one of the schema's types.
pub(crate) fn uid(kind: &EntityType, id: &str) -> EntityUID {
    EntityUID::from_components(kind.clone(), Eid::new(id), None)
}

/// The type of a name without a namespace.
pub(crate) fn entity_type(name: &'static str) -> EntityType {
    let name = Name::parse_unqualified_name(name).expect("the names of this crate are identifiers");
    EntityType::from(name)
}
