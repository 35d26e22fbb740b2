//! Results on their way out: content that is no text, and results too big for a context.
//!
//! `blocks` keeps images, audio and resources out of scripts, `shorten` cuts a big result by its structure, `kept` keeps the whole for
//! a while, `finish` puts them together. `room` counts the memory of answers.

mod blocks;
mod files;
mod finish;
mod kept;
mod room;
mod shorten;

pub(crate) use blocks::{Blocks, Handles, Kept};
pub(crate) use finish::Finish;
pub(crate) use kept::{KeptResults, random_name};
pub(crate) use room::{Room, Taken, answer_weight, block_weight, contents_weight, reading_weight};
pub(crate) use shorten::json_len;
