//! Decides by policies: a `forbid` comes first, then a `permit` with `@ask`, then any other `permit`. Without a `permit` nothing passes, nor
//! does a request for which a policy fails.

use std::{cell::OnceCell, collections::BTreeSet, fmt, sync::Arc};

pub use gatewright_core::MatchedPolicy as Matched;
use gatewright_core::{Decision, Forbidden, PolicyEngine, PolicyObject, PolicyRequest, Principal};

use crate::{
    bounds::evaluating,
    cedar::{
        Context, Entities, Entity, EntityUIDEntry, EvaluationError, Evaluator, Extensions, Literal,
        NoEntitiesSchema, PartialValue, Request, SlotEnv, TCComputation, Value, ValueKind,
    },
    classes::{Callers, Class, Classes},
    load::{Grant, PolicyFile, PolicyProblem, Rule, explained, rules},
    quick::Scene,
    reads::Reads,
    residual::is_never_true,
    values,
};

/// Longest failure of a policy that callers read, in bytes.
const LONGEST_FAILURE: usize = 300;

/// Policies in Cedar.
pub struct CedarPolicies {
    pub(crate) files: Vec<PolicyFile>,
    pub(crate) rules: Vec<Rule>,
    reads: Reads,
    classes: Classes,
}

impl fmt::Debug for CedarPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CedarPolicies").field("policies", &self.rules.len()).finish_non_exhaustive()
    }
}

/// The policies that decided on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// Policies whose conditions are true, in their order.
    pub matched: Vec<Matched>,
    /// Policies that failed, with the failure.
    pub failed: Vec<(Matched, String)>,
}

impl CedarPolicies {
    /// Reads policies.
    ///
    /// # Errors
    /// Every problem that is found without a catalog.
    pub fn read(files: Vec<PolicyFile>) -> Result<Self, Vec<PolicyProblem>> {
        let rules = rules(&files)?;
        let reads = Reads::of(&rules);
        Ok(Self { files, rules, reads, classes: Classes::default() })
    }

    /// The number of policies.
    pub fn count(&self) -> usize {
        self.rules.len()
    }

    /// Decides one request, and says why. Evaluates every policy.
    pub fn explain(&self, request: &PolicyRequest<'_>) -> Explanation {
        let user = values::user(&request.principal.subject, request.principal, &self.reads);
        let object = values::object(&name(&request.object), &request.object);
        let decision = self.decide(request);
        let (mut matched, mut failed) = (Vec::new(), Vec::new());
        match values::context(request, &self.reads) {
            Ok(context) => {
                let entities = entities(&user, &object);
                let context = Some(Context::Value(context));
                let evaluator = evaluator(&user, &object, &request.object, context, &entities);
                for rule in &self.rules {
                    match outcome(&evaluator, rule) {
                        Ok(Outcome::True) => matched.push(self.matched(rule)),
                        Ok(Outcome::False) => {}
                        Ok(Outcome::Open) => failed.push((self.matched(rule), UNCLEAR.to_owned())),
                        Err(why) => failed.push((self.matched(rule), why)),
                    }
                }
            }
            Err(why) => failed.extend(
                self.rules.iter().filter(|rule| matches!(&decision, Decision::Forbid(Forbidden::Failed { policy, .. }) if policy.as_ref() == Some(&rule.name)))
                    .map(|rule| (self.matched(rule), why.clone())),
            ),
        }
        Explanation { decision, matched, failed }
    }

    fn matched(&self, rule: &Rule) -> Matched {
        Matched {
            policy: rule.name.clone(),
            place: format!("{}:{}", self.files[rule.file].name, rule.line),
            effect: match rule.grant {
                Grant::Forbid => "forbid",
                Grant::Permit => "permit",
                Grant::Ask { .. } => "ask",
            },
        }
    }

    fn class(&self, principal: &Principal, object: &PolicyObject<'_>) -> (Arc<Callers>, Arc<Class>) {
        let callers = self.classes.callers(principal, &self.reads);
        let evaluate = |id: &str| self.evaluate(&callers.entity, &values::object(id, object), object);
        let class = self.classes.class(&callers, object, &self.reads, evaluate);
        (callers, class)
    }

    /// Evaluates every policy without a context.
    fn evaluate(&self, user: &Entity, object: &Entity, of: &PolicyObject<'_>) -> Class {
        let mut class = Class { stop: None, permits: Vec::new(), open: Vec::new() };
        let entities = entities(user, object);
        let evaluator = evaluator(user, object, of, None, &entities);
        for (at, rule) in self.rules.iter().enumerate() {
            match (outcome(&evaluator, rule), &rule.grant) {
                (Ok(Outcome::False), _) => {}
                (Ok(Outcome::True), Grant::Forbid) => {
                    class.stop = Some(Forbidden::Policy(rule.name.clone()));
                    break;
                }
                (Ok(Outcome::True), _) => class.permits.push(at),
                (Ok(Outcome::Open), _) => class.open.push(at),
                (Err(why), _) => {
                    class.stop.get_or_insert_with(|| failure(rule, &why));
                }
            }
        }
        class
    }

    /// All that `permits` ask for, in one approval: of every policy that asks, by holders of every scope that is named, and for no longer than
    /// each of them allows.
    fn strictest(&self, permits: impl Iterator<Item = usize>) -> Decision {
        let mut is_permitted = false;
        let asks = permits.map(|at| &self.rules[at]).filter_map(|rule| {
            is_permitted = true;
            match &rule.grant {
                Grant::Ask { reason, may_stand, approvers } => {
                    Some((&rule.name, reason, *may_stand, approvers))
                }
                Grant::Permit | Grant::Forbid => None,
            }
        });
        let asks: Vec<_> = asks.collect();
        let joined = |separator: &str, parts: BTreeSet<&str>| -> Arc<str> {
            parts.into_iter().collect::<Vec<_>>().join(separator).into()
        };
        match &asks[..] {
            [] if is_permitted => Decision::Permit,
            [] => Decision::Forbid(Forbidden::NotPermitted),
            [(policy, reason, may_stand, approvers)] => Decision::Ask {
                policy: Arc::clone(policy),
                reason: Arc::clone(reason),
                may_stand: *may_stand,
                approvers: approvers.as_ref().map(Arc::clone),
            },
            all => {
                let scopes: BTreeSet<&str> = all.iter().filter_map(|(.., scope)| scope.as_deref()).collect();
                Decision::Ask {
                    policy: joined(", ", all.iter().map(|(policy, ..)| &***policy).collect()),
                    reason: joined("; ", all.iter().map(|(_, reason, ..)| &***reason).collect()),
                    may_stand: all.iter().all(|(_, _, may_stand, _)| *may_stand),
                    approvers: (!scopes.is_empty()).then(|| joined(" ", scopes)),
                }
            }
        }
    }

    /// Returns `true` for a resource whose URI can be written in several ways, if policies name resources.
    fn is_unclear(&self, object: &PolicyObject<'_>) -> bool {
        let is_plain = !matches!(object, PolicyObject::Resource(resource) if !resource.is_plain);
        !is_plain && !self.reads.resources.is_empty()
    }

    /// Decides by the policies of `class` that depend on the context.
    fn decide_open(&self, class: &Class, user: &Entity, request: &PolicyRequest<'_>) -> Decision {
        let context = match values::context(request, &self.reads) {
            Ok(context) => context,
            Err(why) => return Decision::Forbid(failure(&self.rules[class.open[0]], &why)),
        };
        // Few requests need these: they are made for the first condition that does.
        let (object, known, cedar) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let object = || object.get_or_init(|| values::object(&name(&request.object), &request.object));
        let scene = Scene { user, object: &object, context: &context };
        let outcome = |at: usize| {
            let rule = &self.rules[at];
            // The scope of an open policy is fulfilled.
            if let Some(is_true) = rule.policy.non_scope_constraints().and_then(|test| scene.is_true(test)) {
                return Ok(if is_true { Outcome::True } else { Outcome::False });
            }
            let known = known.get_or_init(|| entities(user, object()));
            let cedar = cedar.get_or_init(|| {
                evaluator(user, object(), &request.object, Some(Context::Value(context.clone())), known)
            });
            outcome(cedar, rule)
        };
        let (mut permits, mut failed) = (class.permits.clone(), None);
        for at in &class.open {
            let rule = &self.rules[*at];
            match (outcome(*at), &rule.grant) {
                (Ok(Outcome::True), Grant::Forbid) => {
                    return Decision::Forbid(Forbidden::Policy(rule.name.clone()));
                }
                (Ok(Outcome::True), _) => permits.push(*at),
                (Ok(Outcome::False), _) => {}
                (Ok(Outcome::Open), _) => drop(failed.get_or_insert_with(|| failure(rule, UNCLEAR))),
                (Err(why), _) => drop(failed.get_or_insert_with(|| failure(rule, &why))),
            }
        }
        match failed {
            Some(failed) => Decision::Forbid(failed),
            None => self.strictest(permits.into_iter()),
        }
    }
}

impl PolicyEngine for CedarPolicies {
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        if self.is_unclear(&request.object) {
            return Decision::Forbid(Forbidden::Failed { policy: None, why: UNCLEAR.into() });
        }
        let (callers, class) = self.class(request.principal, &request.object);
        match &class.stop {
            Some(stop) => Decision::Forbid(stop.clone()),
            None if class.open.is_empty() => self.strictest(class.permits.iter().copied()),
            None => self.decide_open(&class, &callers.entity, request),
        }
    }

    fn may_permit(&self, principal: &Principal, object: &PolicyObject<'_>) -> bool {
        let (_, class) = self.class(principal, object);
        let permits = |at: usize| self.rules[at].grant != Grant::Forbid;
        match object {
            // Its URI is unknown to conditions, and what is open stays so.
            PolicyObject::Resource(resource) if !resource.is_plain => {
                !self.is_unclear(object) && class.open.is_empty() && class.may_pass(permits)
            }
            PolicyObject::Template { .. } if !self.reads.resources.is_empty() => class.stop.is_none(),
            _ => class.may_pass(permits),
        }
    }

    fn matching(&self, request: &PolicyRequest<'_>) -> Vec<Matched> {
        self.explain(request).matched
    }
}

const UNCLEAR: &str =
    "its URI can be written in several ways; read the resource by the URI that resources/list shows";

fn name(object: &PolicyObject<'_>) -> String {
    match object {
        PolicyObject::Tool(tool) => tool.name.to_owned(),
        PolicyObject::Resource(resource) => resource.uri.to_owned(),
        PolicyObject::Template { template, .. } => (*template).to_owned(),
        PolicyObject::Prompt { app, name } => format!("{app}:{name}"),
    }
}

fn entities(user: &Entity, object: &Entity) -> Entities {
    let both = [user.clone(), object.clone()];
    let none = None::<&NoEntitiesSchema>;
    let made = Entities::from_entities(
        both,
        none,
        TCComputation::AssumeAlreadyComputed,
        Extensions::all_available(),
    );
    // Users and objects have different types, so there are no two entities of one name.
    made.unwrap_or_default()
}

fn evaluator<'e>(
    user: &Entity,
    object: &Entity,
    of: &PolicyObject<'_>,
    context: Option<Context>,
    entities: &'e Entities,
) -> Evaluator<'e> {
    let entry = |entity: &Entity| EntityUIDEntry::from(entity.uid().clone());
    let request = Request::new_unchecked(entry(user), values::action(of), entry(object), context);
    Evaluator::new(request, entities, Extensions::all_available())
}

enum Outcome {
    True,
    False,
    /// It depends on something unknown.
    Open,
}

fn outcome(evaluator: &Evaluator<'_>, rule: &Rule) -> Result<Outcome, String> {
    let interpret =
        || evaluator.partial_interpret(&rule.condition, &SlotEnv::new()).map_err(|error| explained(&error));
    match evaluating(rule.depth, interpret) {
        Ok(PartialValue::Value(Value { value: ValueKind::Lit(Literal::Bool(true)), .. })) => {
            Ok(Outcome::True)
        }
        Ok(PartialValue::Value(Value { value: ValueKind::Lit(Literal::Bool(false)), .. })) => {
            Ok(Outcome::False)
        }
        Ok(PartialValue::Value(_)) => Err("its condition is neither true nor false".to_owned()),
        Ok(PartialValue::Residual(residual)) if is_never_true(&residual) => Ok(Outcome::False),
        Ok(PartialValue::Residual(_)) => Ok(Outcome::Open),
        Err(why) => Err(why),
    }
}

/// The failure of the condition of `rule` that every request meets which its scope covers.
pub(crate) fn certain_failure(rule: &Rule) -> Option<String> {
    let condition = rule.policy.non_scope_constraints()?;
    let unknown = || EntityUIDEntry::Unknown { ty: None, loc: None };
    let request = Request::new_unchecked(unknown(), unknown(), unknown(), None);
    let nothing = Entities::new();
    let evaluator = Evaluator::new(request, &nothing, Extensions::all_available());
    match evaluating(rule.depth, || evaluator.partial_interpret(condition, &SlotEnv::new()).map_err(Box::new))
    {
        // That of a request may be the one that is named.
        Err(error) if !matches!(*error, EvaluationError::EntityDoesNotExist(_)) => Some(explained(&*error)),
        Ok(_) | Err(_) => None,
    }
}

fn failure(rule: &Rule, why: &str) -> Forbidden {
    let why = &why[..why.floor_char_boundary(LONGEST_FAILURE)];
    Forbidden::Failed { policy: Some(rule.name.clone()), why: why.into() }
}
