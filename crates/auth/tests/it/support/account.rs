//! The account page of a user.

use super::site::{Answer, Browser, PASSWORD};

pub(crate) const ACCOUNT: &str = "/oauth/account";

/// The account page of a user who signs in with the password.
pub(crate) async fn account(browser: &Browser<'_>, name: &str) -> Answer {
    let page = browser.get(ACCOUNT).await;
    let next = browser.log_in(&page, name, PASSWORD).await;
    let back = browser.follow(&next).await;
    let page = browser.follow(&back).await;
    assert!(page.text.contains("Your account at Notes"), "{}", page.text);
    page
}
