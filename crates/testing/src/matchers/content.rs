//! Matchers of content: texts, images, resources, media types, messages.

use serde_json::Value;

use super::{
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{
        ContainsText, HasImageContent, HasMessages, HasMimeType, HasResourceContent, HasRole, HasTextContent,
    },
    subject::{Subject, in_blocks},
};
use crate::base::text::shorten;

impl Match for HasTextContent {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        has_text(subject, self.0.as_deref())
    }
}

impl Match for ContainsText {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        has_text(subject, Some(&self.0))
    }
}

impl Match for HasImageContent {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        has_block(subject, "an image", |block| block["type"] == "image")
    }
}

impl Match for HasResourceContent {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        has_block(subject, "a resource", |block| {
            block["type"] == "resource" || block["type"] == "resource_link"
        })
    }
}

impl Match for HasMimeType {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let found = in_blocks(&blocks(subject)?, "mimeType");
        match found.contains(&self.0) {
            true => Ok(()),
            false => {
                let expected = format!("the media type `{}`", self.0);
                Err(Mismatch::new(expected, format!("{found:?}: {subject}")))
            }
        }
    }
}

impl Match for HasMessages {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let Subject::PromptResult(prompt) = subject else {
            return Err(subject.unsupported("the result of a prompt"));
        };
        match prompt.messages.len() {
            count if count == self.0 => Ok(()),
            count => Err(Mismatch::new(format!("{} messages", self.0), format!("{count}: {subject}"))),
        }
    }
}

impl Match for HasRole {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let roles: Vec<&str> = match subject {
            Subject::PromptMessage(message) => vec![&message.role],
            Subject::PromptResult(prompt) => prompt.messages.iter().map(|one| &*one.role).collect(),
            other => return Err(other.unsupported("a message or the result of a prompt")),
        };
        match roles.contains(&&*self.0) {
            true => Ok(()),
            false => Err(Mismatch::new(format!("the role `{}`", self.0), format!("{roles:?}"))),
        }
    }
}

fn blocks(subject: &Subject<'_>) -> Result<Vec<Value>, Mismatch> {
    subject.blocks().ok_or_else(|| subject.unsupported("something with content"))
}

fn has_text(subject: &Subject<'_>, text: Option<&str>) -> Outcome {
    let texts = in_blocks(&blocks(subject)?, "text");
    let found = match text {
        Some(text) => texts.iter().any(|one| one.contains(text)),
        None => texts.iter().any(|one| !one.is_empty()),
    };
    if found {
        return Ok(());
    }
    let expected = text.map_or("a text".to_owned(), |text| format!("a text that holds {text:?}"));
    let actual = match texts.as_slice() {
        [] => format!("no text: {subject}"),
        texts => shorten(&format!("{texts:?}"), 800),
    };
    Err(Mismatch::new(expected, actual))
}

fn has_block(subject: &Subject<'_>, expected: &str, wanted: impl Fn(&Value) -> bool) -> Outcome {
    let blocks = blocks(subject)?;
    if blocks.iter().any(wanted) {
        return Ok(());
    }
    let types: Vec<&str> = blocks.iter().map(|block| block["type"].as_str().unwrap_or("?")).collect();
    Err(Mismatch::new(expected, format!("{} blocks {types:?}: {subject}", blocks.len())))
}
