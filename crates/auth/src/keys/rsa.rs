//! Fresh RSA keys as JWKs.
//!
//! The crypto library hands a new key out as PKCS#8 (RFC 5958) only; a JWK wants the integers of the `RSAPrivateKey` inside
//! (RFC 8017 §A.1.2), so the few DER forms on the way are read here.

use aws_lc_rs::{
    encoding::{AsDer as _, Pkcs8V1Der},
    rsa::KeySize,
    signature::RsaKeyPair,
};

use super::jwk::{Jwk, KeyError};
use crate::crypto::b64;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// A fresh RSA key of 2048 bits, without `alg` and `kid`. Takes some tenths of a second: call it off the async threads.
pub(super) fn generate() -> Result<Jwk, KeyError> {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| KeyError::Damaged)?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| KeyError::Damaged)?;
    from_pkcs8(der.as_ref()).ok_or(KeyError::Damaged)
}

fn from_pkcs8(der: &[u8]) -> Option<Jwk> {
    let mut outer = der;
    let mut info = take(&mut outer, SEQUENCE)?;
    take(&mut info, INTEGER)?;
    take(&mut info, SEQUENCE)?;
    let mut octets = take(&mut info, OCTETS)?;
    let mut key = take(&mut octets, SEQUENCE)?;
    take(&mut key, INTEGER)?;
    let mut part = || {
        let bytes = take(&mut key, INTEGER)?;
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        Some(Some(b64(&bytes[zeros..])))
    };
    Some(Jwk {
        kty: "RSA".into(),
        n: part()?,
        e: part()?,
        d: part()?,
        p: part()?,
        q: part()?,
        dp: part()?,
        dq: part()?,
        qi: part()?,
        ..Jwk::default()
    })
}

/// The content of the element that `rest` begins with, which must have this tag; `rest` is what follows it.
fn take<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&[found, first], after) = rest.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (length, after) = match first {
        0..=0x7f => (usize::from(first), after),
        0x81..=0x84 => {
            let (bytes, after) = after.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), after)
        }
        _ => return None,
    };
    let (content, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::super::jwk::SigningKey;
    use super::*;

    #[test]
    fn a_fresh_key_signs_and_is_never_the_same() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_eq!(SigningKey::from_jwk(&one).unwrap().sign(b"x").len(), 256);
        assert_ne!(one.n, other.n);
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        for der in [
            &b""[..],
            &[SEQUENCE],
            &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[INTEGER, 1, 0],
            &[SEQUENCE, 0x80],
        ] {
            assert!(from_pkcs8(der).is_none(), "{der:?}");
        }
    }
}
