//! Numbers of any width, packed without gaps into bytes, lowest bit first.

/// Bytes that so many numbers take.
#[inline]
pub(crate) fn column_size(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Reads `width` bits, 0 to 64, at bit `at`. Bits beyond the end of `buf` read as zero.
#[inline]
pub(crate) fn read(buf: &[u8], at: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (byte, shift) = (at >> 3, (at & 7) as u32);
    let low = load(buf, byte);
    let mut value = low >> shift;
    if shift + width > 64 {
        value |= u64::from(buf.get(byte + 8).copied().unwrap_or(0)) << (64 - shift);
    }
    if width < 64 { value & ((1 << width) - 1) } else { value }
}

/// Writes the low `width` bits, 0 to 64, of `value` at bit `at`. They must lie within `buf`; other bits stay.
#[inline]
pub(crate) fn write(buf: &mut [u8], at: usize, width: u32, value: u64) {
    if width == 0 {
        return;
    }
    let (byte, shift) = (at >> 3, (at & 7) as u32);
    let mask = if width < 64 { (1 << width) - 1 } else { u64::MAX };
    let value = value & mask;
    let kept = load(buf, byte) & !(mask << shift);
    store(buf, byte, kept | value << shift);
    if shift + width > 64 {
        let over = shift + width - 64;
        let last = &mut buf[byte + 8];
        *last = *last & !((1_u16 << over) - 1) as u8 | (value >> (64 - shift)) as u8;
    }
}

/// Moves the bits from `from` up to `to` by `by` places up. What they leave behind is unspecified.
pub(crate) fn shift_up(buf: &mut [u8], from: usize, to: usize, by: u32) {
    let mut end = to;
    while end > from {
        let count = (end - from).min(56);
        let start = end - count;
        let bits = read(buf, start, count as u32);
        write(buf, start + by as usize, count as u32, bits);
        end = start;
    }
}

/// Moves the bits from `from` up to `to` by `by` places down, over what is there.
pub(crate) fn shift_down(buf: &mut [u8], from: usize, to: usize, by: u32) {
    let mut start = from;
    while start < to {
        let count = (to - start).min(56);
        let bits = read(buf, start, count as u32);
        write(buf, start - by as usize, count as u32, bits);
        start += count;
    }
}

/// A number of two bytes, low byte first.
#[inline(always)]
pub(crate) fn get_u16(node: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([node[at], node[at + 1]])
}

/// Writes a number of two bytes, low byte first.
pub(crate) fn set_u16(node: &mut [u8], at: usize, value: u16) {
    node[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

#[inline]
fn load(buf: &[u8], byte: usize) -> u64 {
    match buf.get(byte..byte + 8) {
        Some(&[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => {
            let mut word = [0; 8];
            let rest = buf.get(byte..).unwrap_or(&[]);
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}

#[inline]
fn store(buf: &mut [u8], byte: usize, word: u64) {
    let bytes = word.to_le_bytes();
    match buf.get_mut(byte..byte + 8) {
        Some(room) => room.copy_from_slice(&bytes),
        None => {
            let rest = &mut buf[byte..];
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{read, shift_down, shift_up, write};

    #[test]
    fn every_width_at_every_place_is_read_as_written_and_touches_nothing_else() {
        for width in 0..=64_u32 {
            let value = 0xA5C3_9617_0F2D_4B81_u64 & if width == 64 { u64::MAX } else { (1 << width) - 1 };
            for at in 0..=(20 * 8 - width as usize) {
                let mut buf = [0xFF_u8; 20];
                write(&mut buf, at, width, value);
                assert_eq!(read(&buf, at, width), value);
                write(&mut buf, at, width, u64::MAX);
                assert_eq!(buf, [0xFF; 20], "width {width} at {at}");
            }
        }
    }

    #[test]
    fn shifting_up_and_down_again_restores_the_bits() {
        for by in 1..40_u32 {
            for from in [0, 3, 17] {
                let mut buf = [0_u8; 64];
                for place in 0..30 {
                    write(&mut buf, place * 11, 11, (place * 397) as u64);
                }
                let before = buf;
                shift_up(&mut buf, from, 330, by);
                for place in 2..30 {
                    assert_eq!(read(&buf, place * 11 + by as usize, 11), ((place * 397) & 0x7FF) as u64);
                }
                shift_down(&mut buf, from + by as usize, 330 + by as usize, by);
                assert_eq!(read(&buf, 0, 330 % 64), read(&before, 0, 330 % 64));
                for place in 0..30 {
                    assert_eq!(read(&buf, place * 11, 11), read(&before, place * 11, 11), "by {by}");
                }
            }
        }
    }
}
