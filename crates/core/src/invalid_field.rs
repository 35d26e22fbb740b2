//! Fields of a configuration that cannot be used.

use std::borrow::Cow;

/// A field of a configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct InvalidField {
    /// Path of the field, such as `vm.timeoutMs`, below the section that is checked; empty for the section as a whole.
    pub path: Cow<'static, str>,
    /// The problem, and the values that would be right.
    pub problem: String,
}

impl InvalidField {
    /// The field at `path`.
    pub fn new(path: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }

    /// The same field, with its path from `section` on.
    #[must_use]
    pub fn below(mut self, section: &str) -> Self {
        self.path =
            if self.path.is_empty() { section.to_owned() } else { format!("{section}.{}", self.path) }.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_with_its_path_and_a_section_without() {
        let field = InvalidField::new("vm.timeoutMs", "must be 1 to 600000");
        assert_eq!(field.to_string(), "vm.timeoutMs: must be 1 to 600000");
        assert_eq!(field.below("codecall").to_string(), "codecall.vm.timeoutMs: must be 1 to 600000");
        let section = InvalidField::new("", "needs `command` or `url`");
        assert_eq!(section.to_string(), "needs `command` or `url`");
        assert_eq!(section.below("apps.crm").to_string(), "apps.crm: needs `command` or `url`");
    }
}
