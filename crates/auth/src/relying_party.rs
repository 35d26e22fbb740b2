//! The WebAuthn relying party: the registration and authentication ceremonies (WebAuthn Level 3), which `webauthn_rp` verifies.
//!
//! The endpoints are in `server::passkeys`, the records in `store::passkeys`.

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

use crate::{
    config::{Deployment, passkeys::host_of},
    crypto::{b64, unb64},
    store::{Passkey, PasskeySet, PasskeyUse},
};

/// Lifetime of a ceremony, and of the page with its button, in milliseconds.
pub(crate) const CEREMONY_MS: u32 = 600_000;

/// A response of an authenticator that was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CeremonyError {
    /// It is not in the form that the script of our page sends.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// It does not answer the challenge.
    #[error("the ceremony failed: {0}")]
    Ceremony(String),
    /// The signature counter went back: there may be two copies of the key.
    #[error("the signature counter went back: the passkey may have been copied")]
    Cloned,
}

/// This server as browsers know it.
pub(crate) struct RelyingParty {
    id: RpId,
    /// Scheme, host and port of the pages, exactly.
    origin: String,
}

/// A ceremony that was started.
pub(crate) struct StartedCeremony {
    /// Options of `navigator.credentials`, as JSON.
    pub(crate) options: String,
    /// State to verify the response with.
    pub(crate) state: Vec<u8>,
}

impl RelyingParty {
    /// The relying party of a deployment; `None` where `publicUrl` has no host name, for which browsers have no passkeys.
    pub(crate) fn of(deployment: &Deployment) -> Option<Self> {
        let host = host_of(&deployment.public_url)?;
        let origin = url::Url::parse(&deployment.public_url).ok()?.origin().ascii_serialization();
        Some(Self { id: RpId::Domain(AsciiDomain::try_from(host).ok()?), origin })
    }

    /// Starts a registration for a user who has `set`.
    pub(crate) fn start_registration(
        &self,
        name: &str,
        display: &str,
        set: Option<&PasskeySet>,
    ) -> Option<StartedCeremony> {
        let handle = set.filter(|set| !set.passkeys.is_empty()).map(|set| handle(&set.handle));
        let handle = handle.unwrap_or_else(|| Some(UserHandle64::new()))?;
        let known = set.map(|set| set.passkeys.as_slice()).unwrap_or_default().iter();
        let exclude = known.filter_map(|passkey| {
            Some(PublicKeyCredentialDescriptor {
                id: CredentialId::<Vec<u8>>::decode(unb64(&passkey.id)?).ok()?,
                transports: AuthTransports::decode(passkey.transports).ok()?,
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
        Some(StartedCeremony { options: serde_json::to_string(&client).ok()?, state: server.encode().ok()? })
    }

    /// Verifies a registration, and returns the passkey and the user handle it is for.
    pub(crate) fn finish_registration(
        &self,
        state: &[u8],
        answer: &str,
    ) -> Result<(Passkey, String), CeremonyError> {
        let state = RegistrationServerState::<64>::decode(state)
            .map_err(|error| CeremonyError::Unreadable(error.to_string()))?;
        let answer = Registration::from_json_custom(answer.as_bytes())
            .map_err(|error| CeremonyError::Unreadable(error.to_string()))?;
        let options = RegistrationVerificationOptions::<&str, &str> {
            allowed_origins: &[&self.origin],
            error_on_unsolicited_extensions: false,
            ..RegistrationVerificationOptions::default()
        };
        let made = state
            .verify(&self.id, &answer, &options)
            .map_err(|error| CeremonyError::Ceremony(error.to_string()))?;
        let unreadable = |_| CeremonyError::Unreadable("the public key".into());
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

    /// Starts a login with any passkey.
    pub(crate) fn start_login(&self) -> Option<StartedCeremony> {
        let mut options = DiscoverableCredentialRequestOptions::passkey(&self.id);
        options.0.timeout = CEREMONY_MS.try_into().ok()?;
        let (server, client) = options.start_ceremony().ok()?;
        Some(StartedCeremony { options: serde_json::to_string(&client).ok()?, state: server.encode().ok()? })
    }

    /// Verifies a login with a passkey of the user whose handle is `owner`.
    pub(crate) fn finish_login(
        &self,
        state: &[u8],
        answer: &DiscoverableAuthentication64,
        passkey: &Passkey,
        owner: &str,
        now_ms: u64,
    ) -> Result<PasskeyUse, CeremonyError> {
        let unreadable = |what: &str| CeremonyError::Unreadable(what.to_owned());
        let state = DiscoverableAuthenticationServerState::decode(state)
            .map_err(|error| CeremonyError::Unreadable(error.to_string()))?;
        let owner = handle(owner).ok_or_else(|| unreadable("the user handle"))?;
        let key = StaticState::decode(passkey.key.as_slice()).map_err(|_| unreadable("the public key"))?;
        let dynamic = DynamicState::decode(passkey.state).map_err(|_| unreadable("the state"))?;
        let mut credential = AuthenticatedCredential::new(answer.raw_id(), &owner, key, dynamic)
            .map_err(|error| CeremonyError::Ceremony(error.to_string()))?;
        let options = AuthenticationVerificationOptions::<&str, &str> {
            allowed_origins: &[&self.origin],
            error_on_unsolicited_extensions: false,
            ..AuthenticationVerificationOptions::default()
        };
        state.verify(&self.id, answer, &mut credential, &options).map_err(|error| match error {
            AuthCeremonyErr::SignatureCounter => CeremonyError::Cloned,
            other => CeremonyError::Ceremony(other.to_string()),
        })?;
        let after = credential.dynamic_state();
        Ok(PasskeyUse {
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
