//! The rules that a client checks: all but exceptions.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::rule::Rule;

/// The rules that a client checks. Default: all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "Written")]
pub struct Strict {
    exceptions: BTreeSet<Rule>,
}

impl Strict {
    /// All rules but these.
    pub fn except(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { exceptions: rules.into_iter().collect() }
    }

    /// No rule.
    pub fn off() -> Self {
        Self::except(Rule::ALL)
    }

    /// True if `rule` is checked.
    pub fn checks(&self, rule: Rule) -> bool {
        !self.exceptions.contains(&rule)
    }

    /// True if no rule is checked.
    pub(crate) fn is_off(&self) -> bool {
        self.exceptions.len() == Rule::ALL.len()
    }
}

/// `true` checks all rules, `false` none.
impl From<bool> for Strict {
    fn from(strict: bool) -> Self {
        if strict { Self::default() } else { Self::off() }
    }
}

/// The written form: `false`, or `{except: [input-schema]}`.
#[derive(Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
enum Written {
    All(bool),
    Except(Exceptions),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
struct Exceptions {
    /// Rules that are not checked.
    except: BTreeSet<Rule>,
}

impl From<Written> for Strict {
    fn from(written: Written) -> Self {
        match written {
            Written::All(strict) => strict.into(),
            Written::Except(exceptions) => Self::except(exceptions.except),
        }
    }
}

#[cfg(feature = "suites")]
impl schemars::JsonSchema for Strict {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Strict".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn is_written_as_a_boolean_or_with_exceptions() {
        let read = |value| serde_json::from_value::<Strict>(value);
        assert_eq!(read(json!(true)).unwrap(), Strict::default());
        assert!(read(json!(false)).unwrap().is_off());
        let one = read(json!({"except": ["base64"]})).unwrap();
        assert!(!one.checks(Rule::Base64) && one.checks(Rule::Schema) && !one.is_off());
        assert!(read(json!({"except": ["base65"]})).is_err());
    }
}
