//! Lifetimes and bounds that are not configuration, in one place.
//!
//! Bounds of a single parser stay beside it; [`RECHECK`] is public because operators have to know it.

use std::time::Duration;

const DAY_S: u64 = 86_400;

/// Window in which the rate limits count requests.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(60);

/// Lifetime of an authorization request, from its start to its code.
pub(crate) const AUTHORIZATION_LIFETIME: Duration = Duration::from_secs(600);
/// Lifetime of a pushed authorization request.
pub(crate) const PUSHED_REQUEST_LIFETIME: Duration = Duration::from_secs(90);
/// Lifetime of an authorization code.
pub(crate) const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// Lifetime of a remembered consent, from the last answer on.
pub(crate) const CONSENT_LIFETIME: Duration = Duration::from_secs(365 * DAY_S);
/// Lifetime of the cookie that binds authorization requests to a browser, in seconds.
pub(crate) const BROWSER_COOKIE_S: u64 = DAY_S;
/// Time after its last update at which the last use of a session is written again, in milliseconds.
pub(crate) const SESSION_UPDATE_MS: u64 = 60_000;
/// Time in which a retry with the token just rotated gets the same successor, for a lost response.
pub(crate) const ROTATION_GRACE: Duration = Duration::from_secs(30);
/// Longest lifetime of a client assertion, in seconds.
pub(crate) const MAX_ASSERTION_LIFETIME_S: u64 = 3600;
/// Time that a registered client is kept longer than its tokens; its use is written at most once in that time.
pub(crate) const REGISTRATION_MARGIN: Duration = Duration::from_secs(DAY_S);
/// Window in which registrations of clients are counted.
pub(crate) const REGISTRATION_WINDOW: Duration = Duration::from_secs(DAY_S);
/// Age of a login after which its user must sign in again to change passkeys, in seconds.
pub(crate) const RECENT_LOGIN_S: u64 = 600;

/// Longest time that a revoked token can pass on an instance that verified it shortly before and did not receive the revocation, because
/// its subscription is not permitted or broken at that moment.
pub const RECHECK: Duration = Duration::from_secs(5);
/// Interval at which a stream verifies its token of the built-in server again.
pub(crate) const STREAM_RECHECK: Duration = Duration::from_secs(1);
/// Verified tokens cached at most.
pub(crate) const MAX_CACHED_TOKENS: usize = 10_000;

/// Networks whose unknown API keys an instance counts at most.
pub(crate) const MAX_COUNTED_NETWORKS: usize = 100_000;

/// Greatest distance of a DPoP proof's `iat` from now, in seconds.
pub(crate) const DPOP_WINDOW_S: u64 = 60;
/// Time for which a DPoP nonce is given out, in seconds; the one before is accepted too.
pub(crate) const DPOP_NONCE_PERIOD_S: u64 = 300;

/// Time in which failed logins count, from the first one on.
pub(crate) const LOCKOUT_WINDOW: Duration = Duration::from_secs(900);
/// Time for which a network counts as one that the user signs in from.
pub(crate) const KNOWN_NETWORK: Duration = Duration::from_secs(30 * DAY_S);

/// Shortest, default and longest time for which a client document is fresh, in seconds.
pub(crate) const DOCUMENT_FRESH_S: (u64, u64, u64) = (60, 300, DAY_S);
/// Time for which a stale document is still used while its host cannot be asked, in seconds.
pub(crate) const DOCUMENT_STALE_S: u64 = DAY_S;
/// Pause before a host that could not be asked is asked again for a stale document, in seconds.
pub(crate) const DOCUMENT_RETRY_S: u64 = 30;

/// Time for which one instance may refresh a token of another server before the next one tries: more than a request can last.
pub(crate) const REFRESH_LOCK: Duration = Duration::from_secs(15);
/// Interval at which waiting instances look for the result, and how often they do.
pub(crate) const REFRESH_POLL: (Duration, usize) = (Duration::from_millis(50), 200);
/// Lifetime of the address at which a user connects to another server, and of the authorization there.
pub(crate) const CONNECT_LIFETIME: Duration = Duration::from_secs(900);
/// Time for which the gateway's registration at another authorization server is used.
pub(crate) const UPSTREAM_REGISTRATION_LIFETIME: Duration = Duration::from_secs(180 * DAY_S);

/// Lifetime of records that are kept: keys, passkeys and the secret that encrypts records.
pub(crate) const FOREVER: Duration = Duration::from_secs(10 * 365 * DAY_S);
