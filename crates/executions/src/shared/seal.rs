//! Sealed heads and chunks.

use gatewright_core::{Claimant, Principal, RecordSealer, SealKey};

use super::index::{OwnerTag, PARTIES};
use crate::{ExecutionId, Head};

const PURPOSE: &str = "execution";
const HEAD: &[u8] = b"head";

/// The digest that stands for `owner` in the indexes.
pub(super) fn owner_tag(key: &SealKey, owner: &Principal) -> OwnerTag {
    let mut text = owner.subject.len().to_string().into_bytes();
    text.push(b' ');
    text.extend_from_slice(owner.subject.as_bytes());
    if let Some(client) = &owner.client_id {
        text.push(b' ');
        text.extend_from_slice(client.as_bytes());
    }
    if let Some(endpoint) = &owner.endpoint {
        // No client has this byte, for it is text.
        text.push(0xff);
        text.extend_from_slice(endpoint.as_bytes());
    }
    tag(key, "owner of executions", &text)
}

/// The digests that stand for the parties of `claimant` in the indexes.
pub(super) fn party_tags(key: &SealKey, claimant: &Claimant) -> [OwnerTag; PARTIES] {
    let mut tags = [OwnerTag::default(); PARTIES];
    for (place, (party, _)) in tags.iter_mut().zip(claimant.parties()) {
        *place = tag(key, "party of executions", party.as_bytes());
    }
    tags
}

fn tag(key: &SealKey, purpose: &str, text: &[u8]) -> OwnerTag {
    let digest = key.digest(purpose, text);
    let mut tag = OwnerTag::default();
    let length = tag.len();
    tag.copy_from_slice(&digest[..length]);
    tag
}

/// Seals the records of one execution.
pub(super) struct Sealer(RecordSealer);

impl Sealer {
    pub(super) fn new(key: &SealKey, id: ExecutionId) -> Self {
        Self(RecordSealer::new(key, PURPOSE, id.bytes()))
    }

    pub(super) fn head(&self, head: &Head) -> Vec<u8> {
        let text = serde_json::to_vec(head).expect("a head can be written as JSON");
        self.0.seal(HEAD, text)
    }

    pub(super) fn open_head(&self, record: Vec<u8>) -> Option<Head> {
        serde_json::from_slice(&self.0.open(HEAD, record)?).ok()
    }

    /// Seals the record `number` of the journal.
    pub(super) fn chunk(&self, number: u32, frames: Vec<u8>) -> Vec<u8> {
        self.0.seal(&name(number), frames)
    }

    pub(super) fn open_chunk(&self, number: u32, record: Vec<u8>) -> Option<Vec<u8>> {
        self.0.open(&name(number), record)
    }
}

fn name(number: u32) -> [u8; 9] {
    let mut name = *b"chunk\0\0\0\0";
    name[5..].copy_from_slice(&number.to_be_bytes());
    name
}
