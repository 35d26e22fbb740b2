//! The token endpoint: client → grant → one atomic store step → signature.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, request::Parts};
use serde_json::{Value, json};

use super::{
    Core, Elsewhere, WINDOW,
    form::{OAuthError, Params, no_store, read_form},
    id_token::sign_identity,
};
use crate::{
    ceiling::{ANONYMOUS, GrantedScopes},
    clients::OAuthClient,
    crypto::{Sealer, b64, mint, same, sha256},
    dpop,
    keys::{Claims, sign},
    records::Grant,
    remote::Standing,
    store::{Digest, Exchange, Exchanged, FamilyId, Key, Redeemed, Rotated, Rotation},
};

/// How long a retry of the token just rotated gets the same successor.
const GRACE: Duration = Duration::from_secs(30);
const SUCCESSOR: &str = "successor";

pub(super) async fn endpoint(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.token(&parts, body).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

/// What is handed out besides the access token.
struct Issue<'a> {
    grant: &'a Grant,
    family: &'a FamilyId,
    scopes: GrantedScopes,
    jkt: Option<&'a str>,
    refresh: Option<String>,
    /// For the ID token, if there is one.
    nonce: Option<&'a str>,
}

/// A code as it is presented.
struct Presented<'a> {
    code: &'a str,
    verifier: &'a str,
    family: FamilyId,
}

impl<'a> Presented<'a> {
    fn read(params: &'a Params) -> Result<Self, OAuthError> {
        let code = params.need("code", "code is required")?;
        let verifier = params.need("code_verifier", "code_verifier is required")?;
        let plain = |c: u8| c.is_ascii_alphanumeric() || b"-._~".contains(&c);
        if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(plain) {
            return Err(OAuthError::invalid_request("code_verifier is malformed"));
        }
        let family = FamilyId::of_token(code).ok_or_else(OAuthError::invalid_grant)?;
        Ok(Self { code, verifier, family })
    }
}

/// The provider that the user logged in at does not answer. Nothing was used up.
fn not_confirmed() -> Response {
    let text = "the sign-in service does not answer; try again later";
    let error = OAuthError {
        status: StatusCode::SERVICE_UNAVAILABLE,
        retry_after_s: Some(5),
        ..OAuthError::new("temporarily_unavailable", text)
    };
    let mut response = error.into_response();
    response.extensions_mut().insert(Elsewhere);
    response
}

impl Core {
    async fn token(&self, parts: &Parts, body: Body) -> Result<Response, OAuthError> {
        let ip = self.caller(parts);
        let address = ip.to_string();
        let plain = parts.uri.query().is_none_or(str::is_empty);
        let params = if plain { Some(read_form(parts, body).await) } else { None };
        if let Some(Ok(params)) = &params
            && let Some((client, presented)) = self.known_client_with_code(parts, params)
        {
            // Nothing but the store is left to ask: the uses are counted in the same step that redeems the code.
            let most = self.config.limits.token;
            let counts = [
                (Self::counter("token", &[&address]), most),
                (Self::counter("token-client", &[&client.id, &address]), most),
            ];
            return self.redeem(client, params, presented, None, &counts, ip).await;
        }
        self.limit("token", &[&address], self.config.limits.token).await?;
        let Some(params) = params else {
            return Err(OAuthError::invalid_request("parameters belong in the body"));
        };
        let params = params?;
        let grant_type = params.need("grant_type", "grant_type is required")?.to_owned();
        if grant_type == ANONYMOUS {
            return self.anonymous(parts, ip).await;
        }
        if !["authorization_code", "refresh_token", "client_credentials"].contains(&grant_type.as_str()) {
            return Err(OAuthError::new("unsupported_grant_type", "the grant type is not supported"));
        }
        let client = self.authenticate_client(parts, &params, &address).await?;
        self.limit("token-client", &[&client.id, &address], self.config.limits.token).await?;
        if !client.may(&grant_type) {
            return Err(OAuthError::new("unauthorized_client", "the client may not use this grant"));
        }
        let proof = dpop::of_request(self, parts, "/oauth/token").await?;
        let issued = match grant_type.as_str() {
            "authorization_code" => {
                let presented = Presented::read(&params)?;
                self.redeem(&client, &params, presented, proof, &[], ip).await
            }
            "refresh_token" => self.refresh(&client, &params, proof, ip).await,
            _ => self.client_credentials(&client, &params, proof, ip).await,
        }?;
        self.keep_in_use(&client).await;
        Ok(issued)
    }

    /// The client and the code of a request that can be judged without the store up to here: the client is configured and proved itself,
    /// may use codes, and presents no proof of possession. Whatever does not fit gives `None`, and its error by the longer way.
    fn known_client_with_code<'a>(
        &'a self,
        parts: &Parts,
        params: &'a Params,
    ) -> Option<(&'a OAuthClient, Presented<'a>)> {
        if params.get("grant_type") != Some("authorization_code") || parts.headers.contains_key("dpop") {
            return None;
        }
        let client = self.static_client(parts, params)?;
        client.may("authorization_code").then_some(())?;
        Some((client, Presented::read(params).ok()?))
    }

    async fn redeem(
        &self,
        client: &OAuthClient,
        params: &Params,
        presented: Presented<'_>,
        proof: Option<String>,
        counts: &[(Key, u64)],
        ip: crate::net::Caller,
    ) -> Result<Response, OAuthError> {
        let Presented { code, verifier, family } = presented;
        let refresh = format!("{}.{}", family.as_str(), mint::<32>(&*self.entropy));
        let exchange = Exchange {
            counts,
            window: WINDOW,
            code: &Digest::of(code),
            family: &family,
            refresh: &Digest::of(&refresh),
        };
        let (grant, cutoffs) = match self.store.exchange(exchange).await? {
            Exchanged::Limited(resets_in) => return Err(OAuthError::too_many(resets_in)),
            Exchanged::Looked { code: Redeemed::Fresh(grant), ended_by } => (grant, ended_by),
            Exchanged::Looked { code: Redeemed::Replayed, .. } => {
                self.store.announce().await;
                self.tell("code.reuse_detected", None, Some(&client.id), Some(ip), None);
                return Err(OAuthError::invalid_grant());
            }
            Exchanged::Looked { code: Redeemed::Unknown, .. } => return Err(OAuthError::invalid_grant()),
        };
        // From here on the code is used up. Whatever does not fit ends the family it has just founded.
        let stored = grant;
        let mut grant: Grant =
            serde_json::from_slice(&stored).map_err(|_| crate::store::StoreError::Corrupt)?;
        let checked = match self.check_code(&grant, client, params, verifier, proof.as_deref()) {
            Ok(()) => match cutoffs {
                Some(cutoffs) => Ok(self.stands_with(&grant, cutoffs)),
                None => self.stands(&grant).await.map_err(OAuthError::from),
            }
            .and_then(|stands| if stands { Ok(()) } else { Err(OAuthError::invalid_grant()) }),
            Err(error) => Err(error),
        };
        if let Err(error) = checked {
            self.end(&family).await?;
            return Err(error);
        }
        let scopes = self.ceiling(&grant.sub, client).narrow(&grant.scopes);
        if scopes.is_empty() {
            self.end(&family).await?;
            return Err(OAuthError::invalid_grant());
        }
        let refresh = grant.refreshes.then_some(refresh);
        if let Some(refresh) = &refresh {
            self.bind(client, &mut grant, &stored, &family, refresh, proof.as_deref()).await?;
        }
        let (jkt, nonce) = (proof.as_deref(), grant.nonce.as_deref());
        let issue = Issue { grant: &grant, family: &family, scopes, jkt, refresh, nonce };
        self.issue("token.issued", issue, ip).await
    }

    fn check_code(
        &self,
        grant: &Grant,
        client: &OAuthClient,
        params: &Params,
        verifier: &str,
        proof: Option<&str>,
    ) -> Result<(), OAuthError> {
        let fits = grant.client == client.id
            && self.clock.now_ms() < grant.code_expires_ms
            && params.get("redirect_uri").is_none_or(|uri| uri == grant.redirect)
            && !grant.challenge.is_empty()
            && same(b64(sha256(verifier)), &grant.challenge)
            && grant.jkt.as_deref().is_none_or(|jkt| Some(jkt) == proof);
        if !fits {
            return Err(OAuthError::invalid_grant());
        }
        self.narrow_resources(grant, params)
    }

    /// The resources of a token request must be within the grant.
    fn narrow_resources(&self, grant: &Grant, params: &Params) -> Result<(), OAuthError> {
        for asked in self.resources(&params.resources)? {
            if !grant.resources.contains(&asked) {
                return Err(OAuthError::new("invalid_target", "the resource is not part of the grant"));
            }
        }
        Ok(())
    }

    async fn refresh(
        &self,
        client: &OAuthClient,
        params: &Params,
        proof: Option<String>,
        ip: crate::net::Caller,
    ) -> Result<Response, OAuthError> {
        let old = params.need("refresh_token", "refresh_token is required")?;
        let family = FamilyId::of_token(old).ok_or_else(OAuthError::invalid_grant)?;
        let digest = Digest::of(old);
        let found = self.store.find(&digest, &family).await?.ok_or_else(OAuthError::invalid_grant)?;
        let mut grant: Grant =
            serde_json::from_slice(&found.grant).map_err(|_| crate::store::StoreError::Corrupt)?;
        if grant.client != client.id || !grant.refreshes || !self.config.refresh.enabled {
            return Err(OAuthError::invalid_grant());
        }
        let absolute = grant.issued_ms + self.config.refresh.absolute_ttl * 1000;
        if self.clock.now_ms() >= absolute || !self.stands(&grant).await? {
            self.end(&family).await?;
            return Err(OAuthError::invalid_grant());
        }
        // A public client's refresh tokens are bound to the key they were issued for (RFC 9449 §5).
        if client.is_public() && grant.jkt.is_some() && grant.jkt != proof {
            return Err(OAuthError::new("invalid_dpop_proof", "the refresh token is bound to another key"));
        }
        let outside = || OAuthError::new("invalid_scope", "a scope is not part of the grant");
        let ceiling = self.ceiling(&grant.sub, client);
        let scopes = match params.get("scope") {
            None => ceiling.narrow(&grant.scopes),
            Some(text) => ceiling.narrow(&grant.scopes.select(text).ok_or_else(outside)?),
        };
        if scopes.is_empty() {
            return Err(OAuthError::new("invalid_scope", "none of the scopes can be granted any more"));
        }
        self.narrow_resources(&grant, params)?;
        match self.standing(&grant).await? {
            Standing::Fine => {}
            Standing::Over => {
                self.end(&family).await?;
                return Err(OAuthError::invalid_grant());
            }
            Standing::Unknown => return Ok(not_confirmed()),
        }
        let rotates = self.config.refresh.rotate_refresh_token || client.is_public();
        let refresh = if rotates {
            let new = self.rotate(old, &digest, &family, &grant, ip).await?;
            self.bind(client, &mut grant, &found.grant, &family, &new, proof.as_deref()).await?;
            Some(new)
        } else if found.current {
            None
        } else {
            return Err(OAuthError::invalid_grant());
        };
        let jkt = proof.as_deref();
        let issue = Issue { grant: &grant, family: &family, scopes, jkt, refresh, nonce: None };
        self.issue("token.refreshed", issue, ip).await
    }

    /// Binds the refresh tokens of a public client to the key that it proved (RFC 9449 §5), before the first of them is handed out. Those of
    /// other clients are bound by the client's authentication.
    async fn bind(
        &self,
        client: &OAuthClient,
        grant: &mut Grant,
        stored: &[u8],
        family: &FamilyId,
        refresh: &str,
        proof: Option<&str>,
    ) -> Result<(), OAuthError> {
        let (true, None, Some(jkt)) = (client.is_public(), &grant.jkt, proof) else { return Ok(()) };
        grant.jkt = Some(jkt.to_owned());
        let bound = serde_json::to_vec(&grant).unwrap_or_default();
        let current = Digest::of(refresh);
        let ends_ms = grant.issued_ms + self.family_life(true).as_millis() as u64;
        let left = Duration::from_millis(ends_ms.saturating_sub(self.clock.now_ms()).max(1));
        if self.store.replace_grant(family, &current, (stored, &bound), left).await? {
            return Ok(());
        }
        // A retry bound them a moment ago, or the family has ended meanwhile.
        let found = self.store.find(&current, family).await?.ok_or_else(OAuthError::invalid_grant)?;
        if found.grant == bound { Ok(()) } else { Err(OAuthError::invalid_grant()) }
    }

    async fn rotate(
        &self,
        old: &str,
        digest: &Digest,
        family: &FamilyId,
        grant: &Grant,
        ip: crate::net::Caller,
    ) -> Result<String, OAuthError> {
        let new = format!("{}.{}", family.as_str(), mint::<32>(&*self.entropy));
        let lock = Sealer::from_secret(old.as_bytes());
        let sealed = b64(lock.seal(&*self.entropy, SUCCESSOR, new.as_bytes()));
        let rotation = Rotation {
            old: digest,
            family,
            new: &Digest::of(&new),
            sealed: sealed.as_bytes(),
            ttl: Duration::from_secs(self.config.refresh.refresh_token_ttl),
            now_ms: self.clock.now_ms(),
            grace: GRACE,
        };
        match self.store.rotate(rotation).await? {
            Rotated::Fresh => Ok(new),
            Rotated::Retried(sealed) => {
                let sealed = std::str::from_utf8(&sealed).ok().and_then(crate::crypto::unb64);
                let open = sealed.and_then(|sealed| lock.open(SUCCESSOR, &sealed));
                open.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(OAuthError::invalid_grant)
            }
            Rotated::Replayed => {
                self.store.announce().await;
                self.tell("token.reuse_detected", Some(&grant.sub), Some(&grant.client), Some(ip), None);
                Err(OAuthError::invalid_grant())
            }
            Rotated::Unknown => Err(OAuthError::invalid_grant()),
        }
    }

    async fn client_credentials(
        &self,
        client: &OAuthClient,
        params: &Params,
        proof: Option<String>,
        ip: crate::net::Caller,
    ) -> Result<Response, OAuthError> {
        if client.is_public() {
            return Err(OAuthError::new("unauthorized_client", "a public client cannot use this grant"));
        }
        let scopes = self.ceiling(&client.id, client).request(params.get("scope"))?;
        let grant = Grant {
            sub: client.id.clone(),
            client: client.id.clone(),
            resources: self.resources(&params.resources)?,
            ..Grant::default()
        };
        self.issue_alone(grant, scopes, proof.as_deref(), ip).await
    }

    async fn anonymous(&self, parts: &Parts, ip: crate::net::Caller) -> Result<Response, OAuthError> {
        let proof = dpop::of_request(self, parts, "/oauth/token").await?;
        let off = || OAuthError::new("unsupported_grant_type", "the grant type is not supported");
        let scopes = self.anonymous_scopes().ok_or_else(off)?;
        let grant = Grant {
            sub: ANONYMOUS.to_owned(),
            client: ANONYMOUS.to_owned(),
            resources: self.resources(&[])?,
            ..Grant::default()
        };
        self.issue_alone(grant, scopes, proof.as_deref(), ip).await
    }

    /// An access token that no code came before.
    async fn issue_alone(
        &self,
        mut grant: Grant,
        scopes: GrantedScopes,
        jkt: Option<&str>,
        ip: crate::net::Caller,
    ) -> Result<Response, OAuthError> {
        let family = FamilyId::mint(&*self.entropy);
        grant.scopes = scopes.record();
        grant.issued_ms = self.clock.now_ms();
        let life = self.family_life(false);
        self.store.put_family(&family, &serde_json::to_vec(&grant).unwrap_or_default(), life).await?;
        let issue = Issue { grant: &grant, family: &family, scopes, jkt, refresh: None, nonce: None };
        self.issue("token.issued", issue, ip).await
    }

    async fn issue(
        &self,
        event: &'static str,
        issue: Issue<'_>,
        ip: crate::net::Caller,
    ) -> Result<Response, OAuthError> {
        let Issue { grant, family, scopes, jkt, refresh, nonce } = issue;
        let (now, life) = (self.clock.now_s(), self.config.refresh.access_token_ttl);
        let jti = mint::<16>(&*self.entropy);
        let aud = match grant.resources.as_slice() {
            [only] => json!(only),
            all => json!(all),
        };
        let mut claims = Claims::new();
        let scope = scopes.to_text();
        let mut set = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        set("iss", json!(self.deployment.public_url));
        set("sub", json!(grant.sub));
        set("aud", aud);
        set("exp", json!(now + life));
        set("iat", json!(now));
        set("jti", json!(jti));
        set("client_id", json!(grant.client));
        set("scope", json!(scope));
        set("family", json!(family.as_str()));
        if grant.auth_s > 0 {
            set("auth_time", json!(grant.auth_s));
        }
        if let Some(jkt) = jkt {
            set("cnf", json!({"jkt": jkt}));
        }
        let key = self.ring.snapshot().await.signing().clone();
        let identity = self.identity(grant, &scopes, nonce);
        let is_slow = key.is_slow();
        let make = move || {
            let token = sign(&key, "at+jwt", &claims);
            let id_token = identity.map(|claims| sign_identity(&key, claims, &token));
            (token, id_token)
        };
        let (token, id_token) = if is_slow {
            tokio::task::spawn_blocking(make)
                .await
                .map_err(|gone| OAuthError::from(crate::store::StoreError::Unavailable(gone.into())))?
        } else {
            make()
        };
        self.tell(event, Some(&grant.sub), Some(&grant.client), Some(ip), Some(&jti));
        let mut body = json!({
            "access_token": token,
            "token_type": if jkt.is_some() { "DPoP" } else { "Bearer" },
            "expires_in": life,
            "scope": scope,
        });
        if let Some(refresh) = refresh {
            body["refresh_token"] = json!(refresh);
        }
        if let Some(id_token) = id_token {
            body["id_token"] = json!(id_token);
        }
        Ok(no_store(StatusCode::OK, &body))
    }
}
