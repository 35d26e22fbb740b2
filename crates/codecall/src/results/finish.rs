//! The last step of a reply with a result: content blocks, the budget in bytes, and a link to the whole.

use std::sync::Arc;

use gatewright_core::{
    Caller,
    rmcp::model::{CallToolResult, ContentBlock, Resource},
};
use serde_json::{Value, json};

use super::{
    Blocks, Handles, KeptResults,
    kept::{KEPT_FOR, Owner},
    shorten::{json_len, shorten},
};
use crate::tool_result::answer;

/// Makes replies to one caller.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    most_bytes: Option<usize>,
    kept: Arc<KeptResults>,
    owner: Owner,
}

impl Finish {
    /// For `caller`, with at most `most_bytes` for a result, and the whole kept in `kept`.
    pub(crate) fn new(most_bytes: Option<usize>, kept: Arc<KeptResults>, caller: &Caller) -> Self {
        Self { most_bytes, kept, owner: Owner::of(caller) }
    }

    /// The reply with `body`. Handles in its result become blocks of the reply.
    pub(crate) fn run(&self, mut body: Value, handles: &Handles) -> CallToolResult {
        let mut blocks = Blocks::default();
        if let Some(result) = body.get_mut("result") {
            handles.release(result, &mut blocks);
        }
        self.reply(body, blocks)
    }

    /// The reply with `body` and `blocks`. A result beyond the budget is shortened, and the whole kept for its caller.
    pub(crate) fn reply(&self, mut body: Value, blocks: Blocks) -> CallToolResult {
        let link = self.shorten(&mut body);
        let mut reply = answer(body);
        reply.content.extend(blocks.into_content());
        reply.content.extend(link);
        reply
    }

    fn shorten(&self, body: &mut Value) -> Option<ContentBlock> {
        let most_bytes = self.most_bytes?;
        let result = body.get_mut("result").filter(|result| json_len(result, most_bytes) > most_bytes)?;
        let whole = result.to_string();
        let bytes = whole.len();
        let cuts = shorten(result, most_bytes);
        let uri = self.kept.keep(&self.owner, whole);
        let minutes = KEPT_FOR.as_secs() / 60;
        let hint = match &uri {
            Some(uri) => format!(
                "the result was shortened to codecall.result.maxBytes ({most_bytes}); return only the fields and items you need, or take \
                 parts of the whole in another script within {minutes} minutes: JSON.parse((await readResource(\"{uri}\")).contents[0].text)"
            ),
            None => format!(
                "the result was shortened to codecall.result.maxBytes ({most_bytes}) and is too big to be kept; return only the fields \
                 and items you need, in pages"
            ),
        };
        body["truncated"] = json!({"bytes": bytes, "cut": cuts.listed, "hint": hint});
        if cuts.more > 0 {
            body["truncated"]["more"] = cuts.more.into();
        }
        let uri = uri?;
        body["truncated"]["resource"] = uri.as_str().into();
        let mut link = Resource::new(uri, "The whole result");
        link.mime_type = Some("application/json".to_owned());
        link.size = u64::try_from(bytes).ok();
        Some(ContentBlock::resource_link(link))
    }
}
