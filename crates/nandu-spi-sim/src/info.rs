//! The pages behind the array: the part's unique identity and its parameter page, as ONFI has it.

use nandu_nand::Geometry;
use nandu_spi::Part;

/// Bytes of a copy of the parameter page.
const PARAMETERS_SIZE: usize = 256;

/// Copies of the parameter page, one after the other.
const COPY_COUNT: usize = 3;

/// Bytes of the unique identity; its complement follows, and both are repeated.
const IDENTITY_SIZE: usize = 16;

/// Repetitions of the unique identity with its complement.
const REPEATED: usize = 16;

/// What stands in this row behind the array, from the first column on; ones follow.
pub(crate) fn page(part: &Part, geometry: &Geometry, row: u32) -> Vec<u8> {
    let parameter_row = part.parameter_row.map(u32::from);
    // Parts that have the parameter page further back have the identity behind it.
    let identity_row = parameter_row.map(|row| if row == 1 { 0 } else { row + 2 });
    match Some(row) {
        row if row == parameter_row => parameters(part, geometry).repeat(COPY_COUNT),
        row if row == identity_row => unique_identity(part),
        _ => Vec::new(),
    }
}

fn unique_identity(part: &Part) -> Vec<u8> {
    let name = part.name.bytes().cycle();
    let identity: Vec<u8> = name.zip(0u8..).take(IDENTITY_SIZE).map(|(byte, at)| byte ^ at).collect();
    let complement = identity.iter().map(|byte| !byte);
    identity.iter().copied().chain(complement).collect::<Vec<u8>>().repeat(REPEATED)
}

/// One copy of the parameter page.
fn parameters(part: &Part, geometry: &Geometry) -> Vec<u8> {
    let mut bytes = vec![0; PARAMETERS_SIZE];
    bytes[..4].copy_from_slice(b"ONFI");
    text(&mut bytes[32..44], part.maker);
    text(&mut bytes[44..64], part.name);
    bytes[64] = part.id.bytes.first().copied().unwrap_or_default();
    bytes[80..84].copy_from_slice(&geometry.page_size.to_le_bytes());
    bytes[84..86].copy_from_slice(&(geometry.spare_size as u16).to_le_bytes());
    bytes[92..96].copy_from_slice(&geometry.pages_per_block.to_le_bytes());
    let dies = u32::from(part.die_count.max(1));
    bytes[96..100].copy_from_slice(&(geometry.block_count / dies).to_le_bytes());
    bytes[100] = part.die_count;
    bytes[102] = 1;
    bytes[103..105].copy_from_slice(&((geometry.bad_block_max / dies) as u16).to_le_bytes());
    bytes[110] = part.programs_per_page;
    let checksum = checksum(&bytes[..PARAMETERS_SIZE - 2]);
    bytes[PARAMETERS_SIZE - 2..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn text(room: &mut [u8], text: &str) {
    room.fill(b' ');
    room.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte.to_ascii_uppercase());
}

/// The checksum of ONFI: CRC-16 with the polynomial 8005h and the start 4F4Eh, highest bit first.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0x4F4E, |crc: u16, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ 0x8005 } else { crc << 1 })
    })
}

#[cfg(test)]
mod tests {
    use nandu_spi::PARTS;

    use super::*;

    #[test]
    fn each_copy_of_the_parameter_page_says_the_shape_and_has_its_checksum() {
        for part in PARTS {
            let geometry = part.geometry();
            let Some(row) = part.parameter_row else { continue };
            let copies = page(part, &geometry, row.into());
            assert_eq!(copies.len(), 768);
            for copy in copies.chunks(256) {
                assert!(copy.starts_with(b"ONFI"));
                assert_eq!(u32::from_le_bytes(copy[80..84].try_into().unwrap()), part.page_size);
                assert_eq!(u32::from_le_bytes(copy[96..100].try_into().unwrap()), part.blocks_per_die);
                // A checksum over the data and the checksum itself, highest byte first, comes to 0.
                let mut all = copy[..254].to_vec();
                all.extend([copy[255], copy[254]]);
                assert_eq!(checksum(&all), 0);
            }
        }
    }

    #[test]
    fn the_unique_identity_stands_beside_its_complement() {
        let page = page(&PARTS[0], &PARTS[0].geometry(), 0);
        assert_eq!(page.len(), 512);
        assert!((0..16).all(|at| page[at] ^ page[16 + at] == 0xFF));
        assert_ne!(page, super::page(&PARTS[1], &PARTS[1].geometry(), 0));
    }
}
