//! Passkeys (WebAuthn Level 3): sign in without a password.
//!
//! The ceremonies are checked by `webauthn_rp`; here is what surrounds them: whose turn it is (`ceremony`), the page where passkeys are
//! added and removed (`account`), the login (`login`) and the first passkey of a user without a password (`enrol`). How they are
//! stored is in `store::passkeys`.

mod account;
mod ceremony;
mod enrol;
mod login;

use webauthn_rp::{
    AuthenticatedCredential, DiscoverableAuthentication64, DiscoverableAuthenticationServerState,
    DiscoverableCredentialRequestOptions, PublicKeyCredentialCreationOptions, Registration,
    RegistrationServerState,
    bin::{Decode as _, Encode as _},
    request::{
        AsciiDomain, PublicKeyCredentialDescriptor, RpId,
        auth::AuthenticationVerificationOptions,
        register::{
            CredProtect, Nickname, PublicKeyCredentialUserEntity, RegistrationVerificationOptions,
            UserHandle64, Username,
        },
    },
    response::{
        AuthTransports, Backup, CredentialId,
        auth::error::AuthCeremonyErr,
        register::{DynamicState, StaticState},
    },
};

pub use self::enrol::{EnrolError, Enrolment};
pub(super) use self::{
    account::{change, show},
    enrol::{finish as enrol, show as show_enrol},
    login::submit,
};
use crate::{
    config::{Deployment, passkeys::host_of},
    crypto::{b64, unb64},
    store::{Passkey, PasskeySet, Use},
};

/// How long a page with a passkey button can be used.
const CEREMONY_MS: u32 = 600_000;

/// Why an answer of an authenticator was not taken.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// It is not what the script of our page sends.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// It is not the answer to what was asked.
    #[error("the ceremony failed: {0}")]
    Ceremony(String),
    /// The counter went back: there are two copies of the key.
    #[error("the signature counter went back: the passkey may have been copied")]
    Cloned,
}

/// This server in the eyes of browsers.
pub(super) struct RelyingParty {
    id: RpId,
    /// Scheme, host and port that the pages are on, exactly.
    origin: String,
}

/// What is shown to the browser, and what is kept to check its answer with.
struct Begun {
    /// The options for `navigator.credentials`, as JSON.
    options: String,
    state: Vec<u8>,
}

impl RelyingParty {
    /// `None` where browsers know no passkeys: `publicUrl` has no host name.
    pub(super) fn of(deployment: &Deployment) -> Option<Self> {
        let host = host_of(&deployment.public_url)?;
        let origin = url::Url::parse(&deployment.public_url).ok()?.origin().ascii_serialization();
        Some(Self { id: RpId::Domain(AsciiDomain::try_from(host).ok()?), origin })
    }

    /// Begins to add a passkey for a user who has `set`.
    fn begin_adding(&self, name: &str, display: &str, set: Option<&PasskeySet>) -> Option<Begun> {
        let handle = set.filter(|set| !set.passkeys.is_empty()).map(|set| handle(&set.handle));
        let handle = handle.unwrap_or_else(|| Some(UserHandle64::new()))?;
        let known = set.map(|set| set.passkeys.as_slice()).unwrap_or_default().iter();
        let exclude = known.filter_map(|held| {
            Some(PublicKeyCredentialDescriptor {
                id: CredentialId::<Vec<u8>>::decode(unb64(&held.id)?).ok()?,
                transports: AuthTransports::decode(held.transports).ok()?,
            })
        });
        let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let user = PublicKeyCredentialUserEntity {
            // Names that a profile of RFC 8265 refuses are shown in plain characters.
            name: Username::try_from(name).or_else(|_| Username::try_from(plain)).ok()?,
            id: &handle,
            display_name: Nickname::try_from(display).ok(),
        };
        let mut options = PublicKeyCredentialCreationOptions::passkey(&self.id, user, exclude.collect());
        options.timeout = CEREMONY_MS.try_into().ok()?;
        // Browsers refuse authenticators that do not know the extension (CTAP 2.1 §12.1); a login wants the user verified anyway.
        options.extensions.cred_protect = CredProtect::None;
        let (server, client) = options.start_ceremony().ok()?;
        Some(Begun { options: serde_json::to_string(&client).ok()?, state: server.encode().ok()? })
    }

    /// The passkey that was made, with the handle it was made for.
    fn finish_adding(&self, state: &[u8], answer: &str) -> Result<(Passkey, String), Refused> {
        let state = RegistrationServerState::<64>::decode(state)
            .map_err(|error| Refused::Unreadable(error.to_string()))?;
        let answer = Registration::from_json_custom(answer.as_bytes())
            .map_err(|error| Refused::Unreadable(error.to_string()))?;
        let options = RegistrationVerificationOptions::<&str, &str> {
            allowed_origins: &[&self.origin],
            error_on_unsolicited_extensions: false,
            ..RegistrationVerificationOptions::default()
        };
        let made = state
            .verify(&self.id, &answer, &options)
            .map_err(|error| Refused::Ceremony(error.to_string()))?;
        let unreadable = |_| Refused::Unreadable("the public key".into());
        let passkey = Passkey {
            id: b64(made.id()),
            name: String::new(),
            key: made.static_state().encode().map_err(unreadable)?,
            state: made.dynamic_state().encode().map_err(unreadable)?,
            backed_up: matches!(made.dynamic_state().backup, Backup::Exists),
            transports: made.transports().encode().map_err(unreadable)?,
            created_ms: 0,
            used_ms: None,
        };
        Ok((passkey, b64(made.user_id())))
    }

    /// Begins a login of whoever has a passkey.
    fn begin_login(&self) -> Option<Begun> {
        let mut options = DiscoverableCredentialRequestOptions::passkey(&self.id);
        options.0.timeout = CEREMONY_MS.try_into().ok()?;
        let (server, client) = options.start_ceremony().ok()?;
        Some(Begun { options: serde_json::to_string(&client).ok()?, state: server.encode().ok()? })
    }

    /// Checks a login against the passkey it names, which is of the user whose handle is `owner`.
    fn finish_login(
        &self,
        state: &[u8],
        answer: &DiscoverableAuthentication64,
        passkey: &Passkey,
        owner: &str,
        now_ms: u64,
    ) -> Result<Use, Refused> {
        let unreadable = |what: &str| Refused::Unreadable(what.to_owned());
        let state = DiscoverableAuthenticationServerState::decode(state)
            .map_err(|error| Refused::Unreadable(error.to_string()))?;
        let owner = handle(owner).ok_or_else(|| unreadable("the user handle"))?;
        let key = StaticState::decode(passkey.key.as_slice()).map_err(|_| unreadable("the public key"))?;
        let dynamic = DynamicState::decode(passkey.state).map_err(|_| unreadable("the state"))?;
        let mut credential = AuthenticatedCredential::new(answer.raw_id(), &owner, key, dynamic)
            .map_err(|error| Refused::Ceremony(error.to_string()))?;
        let options = AuthenticationVerificationOptions::<&str, &str> {
            allowed_origins: &[&self.origin],
            error_on_unsolicited_extensions: false,
            ..AuthenticationVerificationOptions::default()
        };
        state.verify(&self.id, answer, &mut credential, &options).map_err(|error| match error {
            AuthCeremonyErr::SignatureCounter => Refused::Cloned,
            other => Refused::Ceremony(other.to_string()),
        })?;
        let after = credential.dynamic_state();
        Ok(Use {
            before: passkey.state,
            after: after.encode().map_err(|_| unreadable("the state"))?,
            backed_up: matches!(after.backup, Backup::Exists),
            at_ms: now_ms,
        })
    }
}

fn handle(text: &str) -> Option<UserHandle64> {
    let bytes: [u8; 64] = unb64(text)?.try_into().ok()?;
    UserHandle64::decode(bytes).ok()
}
