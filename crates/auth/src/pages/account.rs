//! The account page: what a user allowed and where they are signed in.

use gatewright_core::ApprovalRecord;
use gatewright_pages::{Width, breakable};
use maud::{Markup, html};

use super::{
    Page,
    passkeys::{PasskeyPrompt, needs_script},
    plain,
};
use crate::{
    accounts::{AccountApplication, AccountSession},
    connections::Connection,
    store::Passkey,
};

/// Approvals that are named.
const MOST_APPROVALS: usize = 3;

/// Contents of the account page.
pub(crate) struct AccountPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) user: &'a str,
    pub(crate) action: &'a str,
    pub(crate) csrf: &'a str,
    /// Approvals that wait for the user and the address of their page; `None` where there are no approvals.
    pub(crate) approvals: Option<(&'a [ApprovalRecord], &'a str)>,
    /// Number of plans that wait for input of the user, and the address of the page for it; `None` where there are no plans.
    pub(crate) questions: Option<(usize, &'a str)>,
    pub(crate) applications: &'a [AccountApplication],
    pub(crate) sessions: &'a [AccountSession],
    /// `None` where passkeys are off.
    pub(crate) passkeys: Option<PasskeySection<'a>>,
    /// `None` where no app behind the gateway has users connect.
    pub(crate) connections: Option<&'a [Connection]>,
    pub(crate) sign_out: &'a str,
    /// Error of the last change.
    pub(crate) error: Option<&'a str>,
}

/// Passkeys of the user.
pub(crate) struct PasskeySection<'a> {
    pub(crate) passkeys: &'a [Passkey],
    pub(crate) change: PasskeyChange<'a>,
}

/// Changes of passkeys that the page offers.
pub(crate) enum PasskeyChange<'a> {
    /// None before another login, at this address.
    AfterLogin(&'a str),
    /// All; adding one with this button, if there is room for one.
    Now(Option<&'a PasskeyPrompt>),
}

pub(crate) fn account(content: &AccountPage<'_>) -> Page {
    let mut page = Page::new(
        &format!("Your account at {}", content.server),
        html! {
            h1 { "Your account at " (breakable(content.server)) }
            p.soft { "Signed in as " strong { (content.user) } ". " a href=(content.sign_out) { "Sign out" } }
            @if let Some(error) = content.error { p.alert role="alert" { (error) } }
            @if let Some((waiting, address)) = content.approvals { (approvals(waiting, address)) }
            @if let Some((waiting, address)) = content.questions { (questions(waiting, address)) }
            section {
                h2 { "Connected applications" }
                @if content.applications.is_empty() {
                    p.soft { "None. Applications that you allow to use this server appear here." }
                }
                ul.list { @for (n, one) in content.applications.iter().enumerate() { (application(content, n, one)) } }
            }
            @if let Some(connections) = content.connections { (connected_services(content, connections)) }
            @if let Some(section) = &content.passkeys { (passkeys(content, section)) }
            section {
                h2 { "Sessions" }
                ul.list { @for (n, one) in content.sessions.iter().enumerate() { (session(content, n, one)) } }
            }
        },
    );
    page.width = Width::Wide;
    page.script =
        matches!(&content.passkeys, Some(PasskeySection { change: PasskeyChange::Now(Some(_)), .. }));
    page
}

fn approvals(waiting: &[ApprovalRecord], address: &str) -> Markup {
    html! {
        section {
            div.row { h2 { "Pending approvals" } a href=(address) { "All approvals" } }
            @if waiting.is_empty() { p.soft { "Nothing waits for you." } }
            ul.list {
                @for approval in waiting.iter().take(MOST_APPROVALS) {
                    li {
                        code.name { (breakable(&plain(&approval.object.to_string(), 120))) }
                        p.soft.reason { (plain(&approval.reason, 200)) }
                    }
                }
                @if waiting.len() > MOST_APPROVALS { li.soft { "and " (waiting.len() - MOST_APPROVALS) " more" } }
            }
            @if !waiting.is_empty() { p { a.button href=(address) { "Decide" } } }
        }
    }
}

fn questions(waiting: usize, address: &str) -> Markup {
    html! {
        section {
            div.row { h2 { "Questions of plans" } a href=(address) { "All questions" } }
            p.soft {
                @match waiting {
                    0 => "Nothing waits for you.",
                    1 => "A plan waits for your answer.",
                    more => { (more) " plans wait for your answers." }
                }
            }
        }
    }
}

/// A form with one button, which acts on `value`.
fn act(
    content: &AccountPage<'_>,
    action: &str,
    (field, value): (&str, &str),
    button: &str,
    about: &str,
) -> Markup {
    html! {
        form method="post" action=(content.action) {
            input type="hidden" name="csrf" value=(content.csrf);
            input type="hidden" name="action" value=(action);
            input type="hidden" name=(field) value=(value);
            button.quiet.danger type="submit" aria-describedby=(about) { (button) }
        }
    }
}

fn application(content: &AccountPage<'_>, n: usize, one: &AccountApplication) -> Markup {
    let about = format!("application{n}");
    html! {
        li.row {
            div {
                div.name id=(about) { (breakable(&plain(&one.name, 80))) }
                p.hint { "Last allowed on " (day(one.at_ms)) @if !one.scopes.is_empty() { ": " (breakable(&plain(&one.scopes.join(", "), 300))) } }
            }
            (act(content, "withdraw", ("client", &one.client), "Withdraw", &about))
        }
    }
}

fn session(content: &AccountPage<'_>, n: usize, one: &AccountSession) -> Markup {
    let about = format!("session{n}");
    html! {
        li.row {
            div {
                div.name id=(about) { (one.agent) @if one.is_current { " " span.status.ok { "this browser" } } }
                p.hint { "Signed in on " (day(one.started_ms)) ", last seen on " (day(one.seen_ms)) }
            }
            @if one.is_current { a.button.quiet.danger href=(content.sign_out) aria-describedby=(about) { "Sign out" } }
            @else { (act(content, "end-session", ("session", &one.handle), "Sign out", &about)) }
        }
    }
}

fn connected_services(content: &AccountPage<'_>, connections: &[Connection]) -> Markup {
    html! {
        section {
            h2 { "Connected services" }
            @if connections.is_empty() { p.soft { "None. A tool that needs your account elsewhere asks you to connect it." } }
            ul.list {
                @for (n, one) in connections.iter().enumerate() {
                    @let about = format!("connection{n}");
                    li.row {
                        div {
                            div.name id=(about) { (breakable(&one.app)) }
                            p.hint { (content.server) " can act for you at " (breakable(&one.host)) "." }
                        }
                        (act(content, "disconnect", ("app", &one.app), "Disconnect", &about))
                    }
                }
            }
        }
    }
}

fn passkeys(content: &AccountPage<'_>, section: &PasskeySection<'_>) -> Markup {
    let can_change = matches!(section.change, PasskeyChange::Now(_));
    html! {
        section {
            h2 { "Passkeys" }
            @if section.passkeys.is_empty() {
                p.soft { "You have none yet. With a passkey you sign in with your fingerprint, face, PIN or security key instead of a password." }
            }
            ul.list { @for (n, passkey) in section.passkeys.iter().enumerate() { li { (passkey_entry(content, n, passkey, can_change)) } } }
            @match section.change {
                PasskeyChange::AfterLogin(address) => p { a.button.quiet href=(address) { "Sign in again to change passkeys" } },
                PasskeyChange::Now(None) => p.soft { "You have as many passkeys as this server allows. Remove one to add another." },
                PasskeyChange::Now(Some(prompt)) => {
                    (needs_script())
                    (prompt.form("create", &html! {
                        input type="hidden" name="csrf" value=(content.csrf);
                        input type="hidden" name="action" value="add";
                        div.field {
                            label for="name" { "Name of the new passkey" }
                            input id="name" name="name" maxlength="60" placeholder="My laptop" autocomplete="off";
                        }
                    }, "Add a passkey"))
                }
            }
        }
    }
}

/// A passkey of the list.
fn passkey_entry(content: &AccountPage<'_>, n: usize, passkey: &Passkey, can_change: bool) -> Markup {
    let fields = |action: &str| {
        html! {
            input type="hidden" name="csrf" value=(content.csrf);
            input type="hidden" name="action" value=(action);
            input type="hidden" name="id" value=(passkey.id);
        }
    };
    html! {
        h3 id={"passkey" (n)} { (passkey.name) }
        p.hint {
            "Added on " (day(passkey.created_ms))
            @match passkey.used_ms { Some(at) => { ", last used on " (day(at)) } None => ", not used yet" }
            @if passkey.backed_up { ", synced to your other devices" } "."
        }
        @if can_change {
            details {
                summary { "Rename or remove" }
                form method="post" action=(content.action) {
                    (fields("rename"))
                    label for={"name" (n)} { "New name of " (passkey.name) }
                    input id={"name" (n)} name="name" maxlength="60" value=(passkey.name) required autocomplete="off";
                    div.buttons { button.quiet type="submit" { "Rename" } }
                }
                form method="post" action=(content.action) {
                    (fields("remove"))
                    div.check {
                        input type="checkbox" id={"everywhere" (n)} name="everywhere" value="yes";
                        label for={"everywhere" (n)} { "Also sign out everywhere and end the access of every application" }
                    }
                    div.buttons { button.quiet.danger type="submit" aria-describedby={"passkey" (n)} { "Remove" } }
                }
            }
        }
    }
}

/// A day that stays on one line.
fn day(ms: u64) -> Markup {
    let date = date(ms);
    html! { time datetime=(date) { (date) } }
}

/// Formats a day as `2026-11-21`, UTC (days to civil date).
fn date(ms: u64) -> String {
    let days = ms / 86_400_000 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_shown_as_dates() {
        for (ms, text) in [
            (0, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (951_868_800_000, "2000-03-01"),
            (1_795_219_199_999, "2026-11-20"),
            (1_798_675_200_000, "2026-12-31"),
            (1_798_761_600_000, "2027-01-01"),
        ] {
            assert_eq!(date(ms), text);
        }
    }
}
