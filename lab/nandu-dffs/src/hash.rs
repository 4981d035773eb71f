//! The hash of names: SHA-1 (FIPS 180-4), as the paper has it.

/// Where a name belongs in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bucket: u16,
    /// The second hash, 1 to 255.
    pub(crate) second: u8,
}

impl Place {
    pub(crate) fn of(name: &[u8], bucket_count: usize) -> Place {
        let digest = sha1(name);
        let first = digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let bucket = (first % bucket_count.max(1) as u64) as u16;
        Place { bucket, second: 1 + digest[8] % 255 }
    }
}

/// The SHA-1 of a name: at most 255 bytes, of longer ones only these.
fn sha1(name: &[u8]) -> [u8; 20] {
    let name = &name[..name.len().min(255)];
    let mut state = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0_u32];
    let mut padded = [0; 320];
    padded[..name.len()].copy_from_slice(name);
    padded[name.len()] = 0x80;
    let size = (name.len() + 9).next_multiple_of(64);
    padded[size - 8..size].copy_from_slice(&(name.len() as u64 * 8).to_be_bytes());
    for chunk in padded[..size].chunks_exact(64) {
        compress(&mut state, chunk);
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 5], chunk: &[u8]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(chunk.chunks_exact(4)) {
        *word = bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5A82_7999),
            20..40 => (b ^ c ^ d, 0x6ED9_EBA1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC_u32),
            _ => (b ^ c ^ d, 0xCA62_C1D6),
        };
        let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, sha1};

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(sha1(b"abc")[..8], [0xA9, 0x99, 0x3E, 0x36, 0x47, 0x06, 0x81, 0x6A]);
        let two_chunks = sha1(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
        assert_eq!(two_chunks[..8], [0x84, 0x98, 0x3E, 0x44, 0x1C, 0x3B, 0xD2, 0x6E]);
        assert_eq!(sha1(b"")[..4], [0xDA, 0x39, 0xA3, 0xEE]);
        assert_eq!(sha1(&[b'a'; 255]).len(), 20);
    }

    #[test]
    fn a_name_has_a_bucket_and_a_second_hash() {
        let place = Place::of(b"abc", 347);
        assert_eq!(u64::from(place.bucket), 0x6A81_0647_363E_99A9 % 347);
        assert_eq!(place.second, 0xBB);
    }
}
