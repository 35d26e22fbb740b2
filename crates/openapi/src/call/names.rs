//! Names of fields that callers may not choose, and the writer of fields.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use percent_encoding::percent_decode;

use super::{
    bounded::{BoundedText, Full},
    credentials::{Applied, Schemes},
};
use crate::{ApiKeyLocation, Location, Operation, SecurityScheme};

/// Times that a name is decoded: servers behind proxies decode more than once.
const DECODED: usize = 3;

/// Names that have a meaning of their own in a place: those of parameters or fields of the document, hidden ones included, and of
/// credentials. An object whose keys become names may have none of them.
///
/// Names of members of an object are fields as well; another object may have none of them either.
#[derive(Debug, Default)]
pub(crate) struct TakenNames {
    names: HashSet<String>,
    /// Members, and the parameters or fields that have them.
    members: HashMap<String, Vec<Arc<str>>>,
}

impl TakenNames {
    pub(crate) fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(|name| plain(name.as_bytes())).collect();
        Self { names, members: HashMap::new() }
    }

    /// The same with the members of objects, by the names of those.
    #[must_use]
    pub(crate) fn with_members<'n>(
        mut self,
        objects: impl IntoIterator<Item = (&'n Arc<str>, &'n [Arc<str>])>,
    ) -> Self {
        for (owner, members) in objects {
            for member in members {
                self.members.entry(plain(member.as_bytes())).or_default().push(owner.clone());
            }
        }
        self
    }

    /// The names in the query or the cookies of a request.
    pub(crate) fn of_request(
        location: Location,
        operation: &Operation,
        schemes: &Schemes,
        applied: &Applied,
    ) -> Self {
        let is_here = |key: &ApiKeyLocation| match key {
            ApiKeyLocation::Header => location == Location::Header,
            ApiKeyLocation::Query => location == Location::Query,
            ApiKeyLocation::Cookie => location == Location::Cookie,
        };
        let parameters = operation.parameters.iter().filter(|one| one.location == location);
        let keys = schemes.values().filter_map(|scheme| match scheme {
            SecurityScheme::ApiKey { name, location } if is_here(location) => Some(&**name),
            _ => None,
        });
        let query = applied.query.iter().map(|(name, _)| name.as_str());
        let cookies = applied.cookies.iter().filter_map(|cookie| Some(cookie.split_once('=')?.0));
        let sent: Vec<&str> = match location {
            Location::Query => query.collect(),
            Location::Cookie => cookies.collect(),
            _ => Vec::new(),
        };
        let objects = parameters.clone().map(|one| (&one.name, &*one.members));
        Self::new(parameters.map(|one| &*one.name).chain(keys).chain(sent)).with_members(objects)
    }

    /// Returns an error if a name that the caller chose is taken, as it is or before its first bracket, which many servers read as a
    /// part of a parameter.
    pub(crate) fn check(&self, name: &[u8]) -> Result<(), String> {
        let name = plain(name);
        let before = name.split('[').next().unwrap_or_default();
        self.refuse(self.names.contains(&name) || self.names.contains(before), &name)
    }

    /// Does the same for the name of a member of `owner`, which other objects may not have.
    pub(crate) fn check_member(&self, name: &[u8], owner: &str) -> Result<(), String> {
        self.check(name)?;
        let name = plain(name);
        let before = name.split('[').next().unwrap_or_default();
        let is_of_another = |name: &str| {
            self.members.get(name).is_some_and(|owners| owners.iter().all(|other| **other != *owner))
        };
        self.refuse(is_of_another(&name) || is_of_another(before), &name)
    }

    /// Does the same for a name that begins with that of its own parameter.
    fn check_below(&self, name: &[u8]) -> Result<(), String> {
        let name = plain(name);
        self.refuse(self.names.contains(&name), &name)
    }

    fn refuse(&self, is_taken: bool, name: &str) -> Result<(), String> {
        if !is_taken {
            return Ok(());
        }
        let shown = &name[..name.floor_char_boundary(60)];
        Err(format!(
            "must not have the name `{shown}`, which is that of another parameter, of a member of another one, or of a credential"
        ))
    }
}

/// A name as servers compare it: decoded, in lower case, without space around it.
fn plain(name: &[u8]) -> String {
    let mut name = name.to_vec();
    for _ in 0..DECODED {
        if !name.contains(&b'%') {
            break;
        }
        name = percent_decode(&name).collect();
    }
    String::from_utf8_lossy(&name).trim_matches(|c: char| c.is_whitespace() || c.is_control()).to_lowercase()
}

/// Source of the name of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameOf {
    /// The document.
    Document,
    /// The caller.
    Caller,
    /// The document and, in brackets, the caller.
    Both,
}

/// Writes fields `name=value` of a query, a form or the header `Cookie`.
pub(crate) struct FieldWriter<'t> {
    text: &'t mut BoundedText,
    start: usize,
    separator: &'static str,
    taken: &'t TakenNames,
    /// The parameter or field that is written.
    owner: String,
    /// Names that the caller chose, and the parameters or fields that they are members of.
    chosen: HashMap<String, String>,
}

impl<'t> FieldWriter<'t> {
    pub(crate) fn new(text: &'t mut BoundedText, separator: &'static str, taken: &'t TakenNames) -> Self {
        let (owner, chosen) = (String::new(), HashMap::new());
        Self { start: text.len(), text, separator, taken, owner, chosen }
    }

    /// Begins the parameter or field `owner`, of which everything is that is written from here on.
    pub(crate) fn begin(&mut self, owner: &str) {
        owner.clone_into(&mut self.owner);
    }

    /// Writes a text of its own, with everything escaped.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), String> {
        if self.text.len() > self.start {
            self.text.push(self.separator)?;
        }
        Ok(super::encode::put_escaped(text, self.text)?)
    }

    /// Writes a field.
    ///
    /// # Errors
    /// There is no room, or the caller chose a name that is taken.
    pub(crate) fn field(
        &mut self,
        name_of: NameOf,
        name: impl FnOnce(&mut BoundedText) -> Result<(), Full>,
        value: impl FnOnce(&mut BoundedText) -> Result<(), Full>,
    ) -> Result<Written<'_>, String> {
        if self.text.len() > self.start {
            self.text.push(self.separator)?;
        }
        let start = self.text.len();
        name(self.text)?;
        let end = self.text.len();
        match name_of {
            NameOf::Document => {}
            NameOf::Caller => {
                let name = self.text.since(start);
                self.taken.check_member(name, &self.owner)?;
                let name = plain(name);
                let before = name.split('[').next().unwrap_or_default();
                let owner = self.chosen.entry(before.to_owned()).or_insert_with(|| self.owner.clone());
                self.taken.refuse(*owner != self.owner, &name)?;
            }
            NameOf::Both => self.taken.check_below(self.text.since(start))?,
        }
        self.text.push("=")?;
        value(self.text)?;
        let (name, value) = self.text.since(start).split_at(end - start);
        Ok(Written { name, value: value.get(1..).unwrap_or_default() })
    }
}

/// A field as it is written.
pub(crate) struct Written<'w> {
    pub(crate) name: &'w [u8],
    pub(crate) value: &'w [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_servers_read_them() {
        let taken = TakenNames::new(["tenant", "api%20key"]);
        for name in
            ["tenant", "Tenant", "ten%61nt", "ten%2561nt", " tenant", "tenant[]", "tenant%5Bid%5D", "api key"]
        {
            assert!(taken.check(name.as_bytes()).is_err(), "{name}");
        }
        for name in ["tenants", "a[tenant]", "te"] {
            assert!(taken.check(name.as_bytes()).is_ok(), "{name}");
        }
        assert!(taken.check_below(b"tenant[id]").is_ok() && taken.check_below(b"tenant").is_err());
    }
}
