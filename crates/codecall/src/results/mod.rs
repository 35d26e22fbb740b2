//! Results on their way out: content that is no text, and results too big for a context.
//!
//! `blocks` keeps images, audio and resources out of scripts, `shorten` cuts a big result by its structure, `kept` keeps the whole for
//! a while, `finish` puts them together.

mod blocks;
mod finish;
mod kept;
mod shorten;

pub(crate) use blocks::{Blocks, Handles};
pub(crate) use finish::Finish;
pub(crate) use kept::KeptResults;
pub(crate) use shorten::json_len;
