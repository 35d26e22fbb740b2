//! Messages between instances: their form, and how they are sealed.
//!
//! A message is a head in the clear and a sealed payload. The head (version, sender, exchange, time, epoch) is authenticated together
//! with the receiver. The key is derived for each pair of sender and receiver, so that no message can be turned around or sent on.

use std::{collections::BTreeSet, sync::Arc};

use aws_lc_rs::hkdf::Prk;
use bytes::Bytes;
use gatewright_core::{AccessMode, Groups, Principal, Scopes, WorkTerms};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::cluster::{BootId, ClusterKey, derived, open_in_place, seal_in_place};

/// Longest difference between a message's time and the receiver's, in milliseconds.
pub(super) const FRESH: u64 = 30_000;
/// Most bytes of a body in one part.
pub(super) const CHUNK: usize = 32 * 1024;

const VERSION: u8 = 1;
const PURPOSE: &[u8] = b"message between instances";
const HEAD: usize = 1 + 16 + 16 + 8 + 4;

/// One request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ExchangeId(pub(super) [u8; 16]);

impl ExchangeId {
    /// The id of messages that belong to no exchange.
    pub(super) const NONE: Self = Self([0; 16]);
}

/// The authenticated part of a message that is not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) from: BootId,
    pub(super) exchange: ExchangeId,
    /// Time of sending, in milliseconds since 1970.
    pub(super) at: u64,
    /// Subscriptions the sender has made. What was sent to it under an earlier one may be lost.
    pub(super) epoch: u32,
}

/// The payload of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// The next part of a request or an answer.
    Part(Part),
    /// Parts that the receiver has dealt with, counted from the start of the exchange.
    Credit(u32),
    /// The exchange is over before its end.
    Cancel(Reason),
    /// The sender lives.
    Beat,
}

/// A part of a request or an answer. Without meta data and body it only says that the request arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Part {
    /// Parts are counted from 0 in each direction.
    pub(super) number: u32,
    /// JSON of [`RequestMeta`] or [`ResponseMeta`].
    pub(super) meta: Option<Bytes>,
    pub(super) data: Bytes,
    /// `true` for the last part.
    pub(super) end: bool,
}

/// Why an exchange is over before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The other side went on without it: a client that left, a request that ended.
    Left,
    /// The instance does not serve the session any more; nothing was done.
    Gone,
    /// Messages were lost, or the other instance is gone.
    Broken,
}

/// A request without its body, as the instance that holds the session or the call receives it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RequestMeta {
    pub(super) method: String,
    pub(super) headers: Vec<(String, String)>,
    /// Address of the caller.
    pub(super) caller: Option<std::net::IpAddr>,
    /// The principal that the first instance established; none when authentication is off.
    pub(super) principal: Option<Who>,
    /// The access mode that the request asks for.
    #[serde(default)]
    pub(super) mode: Option<AccessMode>,
    /// Terms of the work that it begins: its token does not travel.
    #[serde(default)]
    pub(super) terms: WorkTerms,
}

/// Status and headers of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResponseMeta {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

/// A [`Principal`] on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Who {
    subject: String,
    client_id: Option<String>,
    /// None is [`Scopes::All`].
    scopes: Option<BTreeSet<String>>,
    #[serde(default)]
    groups: Groups,
    #[serde(default)]
    endpoint: Option<String>,
}

impl From<&Principal> for Who {
    fn from(principal: &Principal) -> Self {
        // Named one by one: a new field of a principal must be carried too.
        let Principal { subject, client_id, scopes, groups, endpoint } = principal;
        let scopes = match scopes {
            Scopes::All => None,
            Scopes::Granted(scopes) => Some(scopes.clone()),
        };
        let owned = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            subject: subject.to_string(),
            client_id: owned(client_id),
            scopes,
            groups: groups.clone(),
            endpoint: owned(endpoint),
        }
    }
}

impl From<Who> for Principal {
    fn from(who: Who) -> Self {
        Self {
            subject: who.subject.into(),
            client_id: who.client_id.map(Into::into),
            scopes: who.scopes.map_or(Scopes::All, Scopes::Granted),
            groups: who.groups,
            endpoint: who.endpoint.map(Into::into),
        }
    }
}

/// Headers as pairs of text; values that are not text are left out.
pub(super) fn pairs(headers: &HeaderMap, kept: impl Fn(&HeaderName) -> bool) -> Vec<(String, String)> {
    let kept = headers.iter().filter(|(name, _)| kept(name));
    kept.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// The headers that [`pairs`] made pairs of.
pub(super) fn headers(pairs: Vec<(String, String)>) -> HeaderMap {
    let read = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in pairs.into_iter().filter_map(read) {
        headers.append(name, value);
    }
    headers
}

pub(super) fn meta_json(meta: &impl Serialize) -> Bytes {
    serde_json::to_vec(meta).expect("text and numbers are JSON").into()
}

pub(super) fn read_meta<T: DeserializeOwned>(part: &Part) -> Option<T> {
    serde_json::from_slice(part.meta.as_ref()?).ok()
}

/// Why a message is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not from an instance with the key, not for this one, or changed on its way.
    Forged,
    /// Older than [`FRESH`], or as much ahead: replayed, or the clocks differ.
    Stale,
    /// A form that this version does not know.
    Unknown,
}

/// Seals and opens messages of one instance.
pub(super) struct Seal {
    own: BootId,
    secret: Prk,
}

impl Seal {
    pub(super) fn new(key: &ClusterKey, own: BootId) -> Self {
        Self { own, secret: key.secret() }
    }

    /// The message as it is sent to `to`. The sender of `head` is this instance.
    pub(super) fn seal(&self, to: BootId, head: Head, message: &Message) -> Vec<u8> {
        let key = derived(&self.secret, &[PURPOSE, &self.own.0, &to.0]);
        let head = encode_head(&Head { from: self.own, ..head });
        let mut sealed = encode(message);
        seal_in_place(&key, &about(&head, to), &mut sealed);
        let mut bytes = Vec::with_capacity(HEAD + sealed.len());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&sealed);
        bytes
    }

    /// Reads a message for this instance at the time `now`.
    pub(super) fn open(&self, bytes: &[u8], now: u64) -> Result<(Head, Message), Refused> {
        let (head, sealed) = bytes.split_at_checked(HEAD).ok_or(Refused::Unknown)?;
        let read = decode_head(head).ok_or(Refused::Unknown)?;
        let key = derived(&self.secret, &[PURPOSE, &read.from.0, &self.own.0]);
        let mut sealed = sealed.to_vec();
        let opened = open_in_place(&key, &about(head, self.own), &mut sealed).ok_or(Refused::Forged)?;
        if read.at.abs_diff(now) > FRESH {
            return Err(Refused::Stale);
        }
        Ok((read, decode(opened).ok_or(Refused::Unknown)?))
    }
}

fn about(head: &[u8], to: BootId) -> Vec<u8> {
    [head, &to.0].concat()
}

fn encode_head(head: &Head) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[0] = VERSION;
    bytes[1..17].copy_from_slice(&head.from.0);
    bytes[17..33].copy_from_slice(&head.exchange.0);
    bytes[33..41].copy_from_slice(&head.at.to_be_bytes());
    bytes[41..45].copy_from_slice(&head.epoch.to_be_bytes());
    bytes
}

fn decode_head(bytes: &[u8]) -> Option<Head> {
    let (version, rest) = bytes.split_first()?;
    let (from, rest) = rest.split_first_chunk()?;
    let (exchange, rest) = rest.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let head = Head {
        from: BootId(*from),
        exchange: ExchangeId(*exchange),
        at: u64::from_be_bytes(*at),
        epoch: u32::from_be_bytes(rest.try_into().ok()?),
    };
    (*version == VERSION).then_some(head)
}

fn encode(message: &Message) -> Vec<u8> {
    match message {
        Message::Part(part) => {
            let meta = part.meta.as_deref().unwrap_or_default();
            // Room for the tag and the nonce as well.
            let mut bytes = Vec::with_capacity(10 + meta.len() + part.data.len() + 28);
            bytes.push(b'p');
            bytes.extend_from_slice(&part.number.to_be_bytes());
            bytes.push(u8::from(part.end));
            bytes.extend_from_slice(&u32::try_from(meta.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend_from_slice(meta);
            bytes.extend_from_slice(&part.data);
            bytes
        }
        Message::Credit(count) => [b"c".as_slice(), &count.to_be_bytes()].concat(),
        Message::Cancel(Reason::Left) => b"xl".to_vec(),
        Message::Cancel(Reason::Gone) => b"xg".to_vec(),
        Message::Cancel(Reason::Broken) => b"xb".to_vec(),
        Message::Beat => b"b".to_vec(),
    }
}

fn decode(bytes: &[u8]) -> Option<Message> {
    let (kind, rest) = bytes.split_first()?;
    Some(match (kind, rest) {
        (b'p', rest) => {
            let (number, rest) = rest.split_first_chunk()?;
            let (end, rest) = rest.split_first()?;
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (meta, data) = rest.split_at_checked(length)?;
            let meta = (!meta.is_empty()).then(|| Bytes::copy_from_slice(meta));
            let (number, data) = (u32::from_be_bytes(*number), Bytes::copy_from_slice(data));
            Message::Part(Part { number, meta, data, end: *end == 1 })
        }
        (b'c', rest) => Message::Credit(u32::from_be_bytes(rest.try_into().ok()?)),
        (b'x', b"l") => Message::Cancel(Reason::Left),
        (b'x', b"g") => Message::Cancel(Reason::Gone),
        (b'x', b"b") => Message::Cancel(Reason::Broken),
        (b'b', []) => Message::Beat,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn seal(key: char) -> Seal {
        let key: ClusterKey = serde_json::from_value(key.to_string().repeat(32).into()).unwrap();
        Seal::new(&key, BootId::random().unwrap())
    }

    fn head(exchange: u8) -> Head {
        Head { from: BootId([0; 16]), exchange: ExchangeId([exchange; 16]), at: NOW, epoch: 7 }
    }

    fn part() -> Message {
        let (meta, data) = (Some(Bytes::from_static(b"{}")), Bytes::from_static(b"body"));
        Message::Part(Part { number: 3, meta, data, end: true })
    }

    #[test]
    fn a_principal_arrives_with_everything_it_has() {
        let ada = Principal {
            subject: "ada".into(),
            client_id: Some("desk".into()),
            scopes: Scopes::parse("crm:read"),
            groups: Groups::new(["sales", "team a"]).unwrap(),
            endpoint: Some("support".into()),
        };
        for principal in [ada.clone(), ada.at(None), Principal::local()] {
            let sent = serde_json::to_string(&Who::from(&principal)).unwrap();
            assert_eq!(Principal::from(serde_json::from_str::<Who>(&sent).unwrap()), principal);
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_written_and_shows_nothing_of_its_payload() {
        let (a, b) = (seal('k'), seal('k'));
        for message in [
            part(),
            Message::Part(Part::default()),
            Message::Credit(9),
            Message::Cancel(Reason::Left),
            Message::Cancel(Reason::Gone),
            Message::Cancel(Reason::Broken),
            Message::Beat,
        ] {
            let sent = a.seal(b.own, head(1), &message);
            assert!(!sent.windows(4).any(|bytes| bytes == b"body"));
            assert_eq!(b.open(&sent, NOW), Ok((Head { from: a.own, ..head(1) }, message)));
        }
    }

    #[test]
    fn a_message_that_was_changed_anywhere_is_refused() {
        let (a, b) = (seal('k'), seal('k'));
        let sent = a.seal(b.own, head(1), &part());
        for at in 0..sent.len() {
            let mut changed = sent.clone();
            changed[at] ^= 1;
            assert!(b.open(&changed, NOW).is_err(), "byte {at}");
            assert!(b.open(&sent[..at], NOW).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_message_is_good_for_its_receiver_sender_and_exchange_only() {
        let (a, b, c, stranger) = (seal('k'), seal('k'), seal('k'), seal('s'));
        let sent = a.seal(b.own, head(1), &part());
        for other in [&a, &c, &stranger] {
            assert_eq!(other.open(&sent, NOW).unwrap_err(), Refused::Forged);
        }
        assert_eq!(b.open(&stranger.seal(b.own, head(1), &part()), NOW).unwrap_err(), Refused::Forged);
        // The payload of one message under the head of another: of another exchange, another sender, another time.
        let payload = &sent[HEAD..];
        for other in [head(2), Head { at: NOW + 1, ..head(1) }, Head { epoch: 8, ..head(1) }] {
            let spliced = [&encode_head(&Head { from: a.own, ..other }), payload].concat();
            assert_eq!(b.open(&spliced, NOW).unwrap_err(), Refused::Forged);
        }
        let spliced = [&encode_head(&Head { from: c.own, ..head(1) }), payload].concat();
        assert_eq!(b.open(&spliced, NOW).unwrap_err(), Refused::Forged);
    }

    #[test]
    fn a_message_expires_after_thirty_seconds() {
        let (a, b) = (seal('k'), seal('k'));
        let sent = a.seal(b.own, head(1), &part());
        for now in [NOW - FRESH, NOW + FRESH] {
            assert!(b.open(&sent, now).is_ok());
        }
        for now in [NOW - FRESH - 1, NOW + FRESH + 1] {
            assert_eq!(b.open(&sent, now).unwrap_err(), Refused::Stale);
        }
    }
}
