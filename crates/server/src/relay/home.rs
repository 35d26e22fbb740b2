//! The instance that holds a session or a call: serves the request that another instance checked, and sends the answer back.

use std::{sync::Weak, time::Duration};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use gatewright_core::{CallerAddress, Claimant, Principal, measure, off_thread};
use http::{Method, Request, Response, request::Parts};
use http_body_util::BodyExt as _;

use super::{
    SessionHome,
    channel::Delivery,
    exchange::Exchange,
    message::{CHUNK, Part, Reason, RequestMeta, ResponseMeta, headers, meta_json, pairs, read_meta},
};
use crate::{
    body::BodyError,
    refusal,
    request_memory::{Message, Pieces, Room},
    unsent::CountedBody,
};

/// Time after which a request without an answer is confirmed.
const CONFIRM: Duration = Duration::from_secs(1);

/// Serves the request of an exchange until its end, or until the other side wants no more of it.
pub(super) async fn serve(mut exchange: Exchange, endpoint: Weak<dyn SessionHome>) {
    let ended = exchange.ended.clone();
    let is_over = {
        let served = answer(&mut exchange, endpoint);
        tokio::select! {
            biased;
            // Whatever worked on the answer is dropped, as when a client's connection ends.
            _ = ended.ended() => false,
            is_over = served => is_over,
        }
    };
    if is_over {
        exchange.over();
    }
}

/// Returns `true` once the whole answer was sent, or the other side was told that there is none.
async fn answer(exchange: &mut Exchange, endpoint: Weak<dyn SessionHome>) -> bool {
    let endpoint = endpoint.upgrade().filter(|endpoint| !endpoint.gate().stopping.is_cancelled());
    let Some(endpoint) = endpoint else {
        exchange.cancel(Reason::Gone).await;
        return true;
    };
    let Ok(first) = exchange.receive().await else { return false };
    let Some(mut parts) = read_meta::<RequestMeta>(&first).and_then(parts_of) else {
        exchange.cancel(Reason::Broken).await;
        return true;
    };
    let gate = endpoint.gate();
    let is_known = |principal: &Principal| gate.is_open_to_all() || *principal != Principal::local();
    if !parts.extensions.get::<Principal>().is_some_and(is_known) {
        // The other instance asks nobody who they are, and this one does.
        exchange.cancel(Reason::Gone).await;
        return true;
    }
    gate.note_claimant(&mut parts);
    let room = gate.room(&parts, parts.method == Method::GET);
    let most = if room.is_ok() { gate.most_bytes } else { 0 };
    let mut memory = gate.requests.begin(gate.claimant(&parts));
    let message = match tokio::time::timeout(gate.body_time, read(exchange, first, most, &mut memory)).await {
        Ok(None) => return false,
        Ok(Some(message)) => message,
        Err(_) => Err(BodyError::TooSlow),
    };
    let response = match (room, message) {
        (Err(full), _) => full,
        (Ok(_), Err(unread)) => refusal::unread(unread, most),
        (Ok(permit), Ok(text)) => match with_values(text, memory).await {
            Ok(message) => confirmed(exchange, endpoint.serve(parts, message, permit)).await,
            Err(full) => full,
        },
    };
    let response = gate.unsent.count(response, Claimant::default);
    send(exchange, response).await
}

fn parts_of(meta: RequestMeta) -> Option<Parts> {
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(meta.method.as_bytes()).ok()?;
    *request.headers_mut() = headers(meta.headers);
    if let Some(caller) = meta.caller {
        request.extensions_mut().insert(CallerAddress(caller));
    }
    if let Some(principal) = meta.principal {
        request.extensions_mut().insert(Principal::from(principal));
    }
    if let Some(mode) = meta.mode {
        request.extensions_mut().insert(mode);
    }
    request.extensions_mut().insert(meta.terms);
    Some(request.into_parts().0)
}

/// The whole body, of at most `most` bytes; none when the exchange is over. What is longer, or finds no room, is read to its end and dropped, so that
/// its sender comes to hear the answer.
async fn read(
    exchange: &mut Exchange,
    mut part: Part,
    most: usize,
    room: &mut Room,
) -> Option<Result<Bytes, BodyError>> {
    let mut pieces = Pieces::new(most, room);
    loop {
        // Told by the whole.
        let _ = pieces.add(part.data);
        if part.end {
            return Some(pieces.whole());
        }
        part = exchange.receive().await.ok()?;
    }
}

/// The message, once there is room for its values.
async fn with_values(text: Bytes, room: Room) -> Result<Message, Response<Body>> {
    let read = text.clone();
    // What cannot be measured is not read either, and was refused where it came from.
    let measured = move || measure(&read, usize::MAX).map_or(0, |found| found.bytes);
    let values = off_thread(text.len(), measured).await;
    Message::new(text, values, room).map_err(refusal::no_room_in_memory)
}

/// Waits for an answer; one that takes its time is preceded by a confirmation that the request arrived.
async fn confirmed(
    exchange: &mut Exchange,
    mut serving: impl Future<Output = Response<Body>> + Unpin,
) -> Response<Body> {
    match tokio::time::timeout(CONFIRM, &mut serving).await {
        Ok(response) => response,
        Err(_) => {
            let _ = exchange.send(None, Bytes::new(), false).await;
            serving.await
        }
    }
}

/// Sends an answer: its head and whatever is there of the body at once, the rest as it comes.
async fn send(exchange: &mut Exchange, response: Response<CountedBody>) -> bool {
    let (parts, mut body) = response.into_parts();
    let meta = ResponseMeta { status: parts.status.as_u16(), headers: pairs(&parts.headers, |_| true) };
    let mut meta = Some(meta_json(&meta));
    loop {
        let Ok((data, is_end)) = piece(&mut body, meta.is_none()).await else {
            // The client sees that the body is not whole.
            exchange.cancel(Reason::Broken).await;
            return true;
        };
        let sent = exchange.send_all(meta.take(), data, is_end).await;
        if is_end || !matches!(sent, Ok(Delivery::Sent)) {
            return is_end;
        }
    }
}

/// Reads what is there of a body, up to a part's length or one frame more; `true` if that is the rest. May wait for a first frame.
async fn piece(body: &mut CountedBody, waits: bool) -> Result<(Bytes, bool), axum::Error> {
    let mut piece = BytesMut::new();
    let mut waits = waits;
    while piece.len() < CHUNK {
        let frame = match std::mem::take(&mut waits) {
            true => body.frame().await,
            false => match body.frame().now_or_never() {
                Some(frame) => frame,
                None => break,
            },
        };
        let Some(frame) = frame else { return Ok((piece.freeze(), true)) };
        if let Ok(data) = frame?.into_data() {
            if piece.is_empty() && data.len() >= CHUNK {
                // As it is: it counts as unsent until the other instance has taken it.
                return Ok((data, false));
            }
            piece.extend_from_slice(&data);
        }
    }
    Ok((piece.freeze(), false))
}
