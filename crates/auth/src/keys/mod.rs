//! JSON Web Keys, the ring of rotating signing keys, and signed tokens.

mod generate;
mod jwk;
mod jwt;
mod ring;
mod rsa;

pub(crate) use self::jwt::{MAX_TOKEN_BYTES, check_end, check_start, check_times, claim_time};

pub use self::{
    jwk::{Algorithm, Jwk, JwkSet, KeyError, SigningKey, VerifyingKey},
    jwt::{Claims, Expected, Header, SKEW_S, Token, TokenError, sign},
    ring::{KeyInfo, KeyRing, RingError, RingOptions, RingSnapshot},
};
