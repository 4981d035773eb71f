//! The last transactions, kept to explain an illegal use.

use std::collections::VecDeque;
use std::fmt;

use crate::command::shape;

/// How many transactions are kept. Looks at the same register in a row count as one.
const LENGTH: usize = 24;

/// Bytes of a transaction that are kept: its header and the first of its data.
const SHOWN: usize = 4;

/// One transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    number: u64,
    at_ns: u64,
    opcode: u8,
    header: [u8; SHOWN],
    header_size: u8,
    data: [u8; SHOWN],
    data_size: u32,
    /// How often it came in a row.
    times: u32,
}

impl Entry {
    pub(crate) fn note_header(&mut self, byte: u8) {
        if let Some(place) = self.header.get_mut(usize::from(self.header_size)) {
            *place = byte;
            self.header_size += 1;
        }
    }

    pub(crate) fn note_data(&mut self, bytes: &[u8]) {
        if let Some(room) = self.data.get_mut(self.data_size as usize..) {
            let size = room.len().min(bytes.len());
            room[..size].copy_from_slice(&bytes[..size]);
        }
        self.data_size += bytes.len() as u32;
    }

    fn header(&self) -> &[u8] {
        &self.header[..usize::from(self.header_size)]
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = self.at_ns as f64 / 1000.0;
        write!(f, "#{} at {microseconds:.1} us: {:02X}h", self.number, self.opcode)?;
        if let Some(shape) = shape(self.opcode) {
            write!(f, " {}", shape.name)?;
        }
        for byte in self.header() {
            write!(f, " {byte:02X}")?;
        }
        if self.data_size > 0 {
            write!(f, " :")?;
            for byte in &self.data[..SHOWN.min(self.data_size as usize)] {
                write!(f, " {byte:02X}")?;
            }
        }
        if self.data_size as usize > SHOWN {
            write!(f, " ... ({} bytes)", self.data_size)?;
        }
        if self.times > 1 { write!(f, ", {} times", self.times) } else { Ok(()) }
    }
}

/// The last transactions, oldest first; the last of them is the one under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<Entry>);

impl History {
    /// Begins a transaction.
    pub(crate) fn open(&mut self, number: u64, at_ns: u64, opcode: u8) {
        self.0.push_back(Entry { number, at_ns, opcode, times: 1, ..Entry::default() });
    }

    /// The transaction under way.
    pub(crate) fn current(&mut self) -> Option<&mut Entry> {
        self.0.back_mut()
    }

    /// Ends a transaction. A register that is looked at again and again keeps one entry, with what was seen last.
    pub(crate) fn close(&mut self) {
        let [.., before, last] = self.0.make_contiguous() else { return };
        let is_look = last.opcode == nandu_spi::command::GET_FEATURE;
        if is_look && before.opcode == last.opcode && before.header() == last.header() {
            (before.data, before.times) = (last.data, before.times + 1);
            self.0.pop_back();
        }
        if self.0.len() > LENGTH {
            self.0.pop_front();
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|entry| write!(f, "\n  {entry}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_in_a_row_are_one_entry_and_old_ones_leave() {
        let mut history = History::default();
        for number in 0..40 {
            history.open(number, number * 1000, 0x06);
            history.close();
        }
        for (number, seen) in [(40, 3), (41, 1), (42, 0)] {
            history.open(number, number * 1000, 0x0F);
            let entry = history.current().unwrap();
            entry.note_header(0xC0);
            entry.note_data(&[seen]);
            history.close();
        }
        let lines: Vec<String> = history.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 1 + LENGTH);
        assert_eq!(lines[1], "  #17 at 17.0 us: 06h write enable");
        assert_eq!(lines[LENGTH], "  #40 at 40.0 us: 0Fh get feature C0 : 00, 3 times");
    }
}
