//! Skips what is not structure: comments, texts, templates up to their next expression, numbers, regular expressions.

use super::{Bracket, Scan};
use crate::validate::Refusal;

impl Scan<'_> {
    pub(super) fn line_comment(&mut self) {
        while self.at < self.bytes.len() && !matches!(self.bytes[self.at], b'\n' | b'\r') {
            self.at += 1;
        }
    }

    pub(super) fn block_comment(&mut self) {
        let body = &self.bytes[self.at + 2..];
        let len = body.windows(2).position(|pair| pair == b"*/").unwrap_or(body.len());
        self.new_line |= body[..len].iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        self.at = (self.at + len + 4).min(self.bytes.len());
    }

    pub(super) fn string(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\\' => self.at += if self.peek(1) == b'\r' && self.peek(2) == b'\n' { 3 } else { 2 },
                b'\n' | b'\r' => return,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }

    /// Text of a template up to its end or its next `${`.
    pub(super) fn template(&mut self) -> Result<(), Refusal> {
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    self.operand();
                    return Ok(());
                }
                b'$' if self.peek(1) == b'{' => {
                    self.at += 2;
                    self.settle();
                    self.push(Bracket::Template);
                    return Ok(());
                }
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    pub(super) fn number(&mut self) {
        while matches!(self.peek(0), b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.') {
            self.at += 1;
        }
        self.operand();
    }

    pub(super) fn regex(&mut self) {
        self.at += 1;
        let mut class = false;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\n' | b'\r' => return,
                b'\\' => self.at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => {
                    self.at += 1;
                    while self.peek(0).is_ascii_alphanumeric() {
                        self.at += 1;
                    }
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}
