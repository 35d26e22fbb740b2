//! Writes protobuf into one buffer, without messages in between.
//!
//! A collector gets some 700 bytes for each span: built out of messages they take dozens of allocations.

/// A message being written. Fields are written whether empty or not.
#[derive(Debug, Default)]
pub(crate) struct Wire(Vec<u8>);

/// The kinds of field that OTLP has, with their numbers on the wire.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl Wire {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn number(&mut self, field: u8, value: u64) {
        self.key(field, WireType::Varint);
        self.varint(value);
    }

    pub(crate) fn fixed64(&mut self, field: u8, value: u64) {
        self.key(field, WireType::Fixed64);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn fixed32(&mut self, field: u8, value: u32) {
        self.key(field, WireType::Fixed32);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u8, value: &[u8]) {
        self.key(field, WireType::Bytes);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// Several texts as one.
    pub(crate) fn text<const N: usize>(&mut self, field: u8, parts: [&str; N]) {
        self.key(field, WireType::Bytes);
        self.varint(parts.iter().map(|part| part.len() as u64).sum());
        parts.iter().for_each(|part| self.0.extend(part.as_bytes()));
    }

    /// A message within this one.
    pub(crate) fn message(&mut self, field: u8, write: impl FnOnce(&mut Self)) {
        self.key(field, WireType::Bytes);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        // Its length comes in front; one byte is kept for it, which attributes need no more than.
        let length = self.0.len() - at - 1;
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => self.0[at] = short,
            _ => {
                let mut digits = [0; 10];
                let count = varint(length as u64, &mut digits);
                self.0.splice(at..=at, digits[..count].iter().copied());
            }
        }
    }

    /// Fields that were written before.
    pub(crate) fn fields(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    fn key(&mut self, field: u8, wire_type: WireType) {
        self.varint(u64::from(field) << 3 | wire_type as u64);
    }

    fn varint(&mut self, value: u64) {
        // Keys, and the lengths of nearly everything.
        if value <= 0x7f {
            return self.0.push(value as u8);
        }
        let mut digits = [0; 10];
        let count = varint(value, &mut digits);
        self.0.extend(&digits[..count]);
    }
}

/// Seven bits in each byte, the lowest first; says how many bytes.
fn varint(mut value: u64, digits: &mut [u8; 10]) -> usize {
    let mut count = 0;
    while value > 0x7f {
        digits[count] = (value & 0x7f) as u8 | 0x80;
        value >>= 7;
        count += 1;
    }
    digits[count] = value as u8;
    count + 1
}
