//! The id of a new volume, drawn from what tells it from others.
//!
//! A page says which volume it is of, so that one of another volume, or of what stood on the chip before, is not taken for a page of this
//! one where its address fits. For that the ids have to differ, also where nobody has a number by chance to give.

/// Collects what tells a new volume from others.
#[derive(Clone, Copy, Debug)]
pub struct VolumeId(u64);

impl VolumeId {
    /// Begins with what the caller gives: something by chance, the chip's serial number, or nothing.
    pub const fn new(salt: u64) -> VolumeId {
        VolumeId(salt ^ 0x6e61_6e64_7500_0001)
    }

    /// Takes something in: the order matters.
    pub const fn add(&mut self, value: u64) {
        // Multiplications spread each bit upwards, and the shifts bring it down again.
        let mixed = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// The id: neither 0 nor that of the volume before.
    pub const fn draw(mut self, before: u32) -> u32 {
        loop {
            self.add(before as u64);
            let id = (self.0 >> 32) as u32;
            if id != 0 && id != before {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::VolumeId;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn ids_differ_by_whatever_goes_in() {
        let mut ids = Vec::new();
        for salt in 0..30 {
            for bad in 0..30 {
                let mut id = VolumeId::new(salt);
                id.add(bad);
                ids.push(id.draw(0));
            }
        }
        // One chip formatted again and again.
        let mut before = 0;
        for _ in 0..1000 {
            before = VolumeId::new(0).draw(before);
            ids.push(before);
        }
        let different: BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert!(!different.contains(&0));
    }
}
