//! Signing keys: what a JWK becomes, the ring of keys that rotate, and tokens signed with them.

mod jwk;
mod jwt;
mod ring;
mod rsa;

pub(crate) use self::jwt::{MOST_TOKEN_BYTES, times as check_times};

pub use self::{
    jwk::{Algorithm, Jwk, JwkSet, KeyError, SigningKey, VerifyingKey},
    jwt::{Claims, Expected, Header, Refused, SKEW_S, Token, sign},
    ring::{KeyInfo, KeyRing, RingError, RingOptions, RingSnapshot},
};
