//! Matchers of lists: tools, resources, resource templates, prompts.

use gatewright_findings::nearest;

use super::{
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{ContainsPrompt, ContainsResource, ContainsResourceTemplate, ContainsTool},
    subject::Subject,
};
use crate::base::text::shorten;

impl Match for ContainsTool {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let Subject::Tools(all) = subject else { return Err(subject.unsupported("a list of tools")) };
        contains(&self.0, "tool", all.iter().map(|one| &*one.name))
    }
}

impl Match for ContainsResource {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let Subject::Resources(all) = subject else { return Err(subject.unsupported("a list of resources")) };
        contains(&self.0, "resource", all.iter().map(|one| &*one.uri))
    }
}

impl Match for ContainsResourceTemplate {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let Subject::ResourceTemplates(all) = subject else {
            return Err(subject.unsupported("a list of resource templates"));
        };
        contains(&self.0, "resource template", all.iter().map(|one| &*one.uri_template))
    }
}

impl Match for ContainsPrompt {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let Subject::Prompts(all) = subject else { return Err(subject.unsupported("a list of prompts")) };
        contains(&self.0, "prompt", all.iter().map(|one| &*one.name))
    }
}

fn contains<'a>(expected: &str, item: &str, names: impl Iterator<Item = &'a str>) -> Outcome {
    let names: Vec<&str> = names.collect();
    if names.contains(&expected) {
        return Ok(());
    }
    let hint = nearest(expected, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let actual = match names.len() {
        0 => format!("there are no {item}s"),
        count => format!("{count} {item}s: {}", shorten(&names.join(", "), 600)),
    };
    Err(Mismatch::new(format!("a {item} `{expected}`"), actual).hint(hint))
}
