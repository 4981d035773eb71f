//! Numbers to bytes and back, little-endian.

/// Why bytes cannot be read as what they should be.
pub(super) type Reason = String;

/// Appends numbers to a buffer.
#[derive(Default)]
pub(super) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Empties the buffer and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Takes numbers from the front of a slice; running out of bytes is an error, never a panic.
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| "it ends too early".to_owned())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| "it ends too early".to_owned())?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Reason> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Reason> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Reason> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Reason> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, Reason> {
        self.u64().map(f64::from_bits)
    }

    /// Bytes not taken yet. Counts read from the bytes are held against it before memory is asked for.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Errs if bytes are left.
    pub(super) fn finish(self) -> Result<(), Reason> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("it has {} bytes too many", self.rest.len())) }
    }
}
