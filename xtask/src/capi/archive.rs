//! Static libraries, as far as two builds of one library go into one file: archives of System V, and symbols of ELF objects.
//!
//! **Why.** Stores and files stand on one tree, which knows at compile time whether it serves files. So a program with stores alone would pay for
//! files if the library has them. In the file made here the functions of stores stand twice: in the first object as they are without files, weakly,
//! and in the second with them. A linker takes the first object for a program that calls stores alone; if a program
//! calls files, the second comes in and its definitions replace the weak ones.

use std::collections::BTreeSet;

const MAGIC: &[u8] = b"!<arch>\n";

/// Bytes before each member.
const HEADER_SIZE: usize = 60;

const SECTION_SYMBOLS: u32 = 2;
const BINDING_GLOBAL: u8 = 1;
const BINDING_WEAK: u8 = 2;

struct Member {
    name: String,
    bytes: Vec<u8>,
}

/// The library of `full`, before it the objects of `store` that define functions of nandu, weakly.
pub(super) fn join(store: &[u8], full: &[u8]) -> Result<Vec<u8>, String> {
    let mut members = Vec::new();
    for mut member in members_of(store)?.into_iter().filter(|member| member.name.starts_with("nandu_capi")) {
        for symbol in symbols(&member.bytes)? {
            member.bytes[symbol.info_at] = BINDING_WEAK << 4 | (member.bytes[symbol.info_at] & 15);
        }
        members.push(Member { name: format!("store{}.o", members.len()), ..member });
    }
    if members.is_empty() {
        return Err("the library of stores has no object of nandu_capi".to_owned());
    }
    let from = members.len();
    members.extend(members_of(full)?);
    for (index, member) in members[from..].iter_mut().enumerate() {
        member.name = format!("nandu{index}.o");
    }
    write(&members)
}

/// The objects of an archive, without its index.
fn members_of(archive: &[u8]) -> Result<Vec<Member>, String> {
    let cut = || "an archive ends in the middle of a member".to_owned();
    let mut rest = archive.strip_prefix(MAGIC).ok_or("no archive")?;
    let (mut members, mut long_names) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (header, behind) = rest.split_at_checked(HEADER_SIZE).ok_or_else(cut)?;
        let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).trim().to_owned();
        let size: usize = text(48..58).parse().map_err(|_| "a member of an archive has no size")?;
        let (bytes, behind) = behind.split_at_checked(size).ok_or_else(cut)?;
        // Members begin at even places.
        rest = behind.get(size % 2..).unwrap_or_default();
        let name = text(0..16);
        match name.as_str() {
            "/" | "/SYM64/" => {}
            "//" => long_names = bytes.to_vec(),
            _ => {
                let name = match name.strip_prefix('/').and_then(|at| at.parse::<usize>().ok()) {
                    Some(at) => {
                        let name = long_names.get(at..).ok_or_else(cut)?;
                        String::from_utf8_lossy(name.split(|byte| *byte == b'/').next().unwrap_or_default())
                            .into_owned()
                    }
                    None => name.trim_end_matches('/').to_owned(),
                };
                members.push(Member { name, bytes: bytes.to_vec() });
            }
        }
    }
    Ok(members)
}

/// An archive with an index, as every linker takes it. Names are shorter than 16 bytes.
fn write(members: &[Member]) -> Result<Vec<u8>, String> {
    let mut places = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let names: BTreeSet<String> = symbols(&member.bytes)?.into_iter().map(|symbol| symbol.name).collect();
        places.extend(names.into_iter().map(|name| (name, index)));
    }
    let text_size: usize = places.iter().map(|(name, _)| name.len() + 1).sum();
    let index_size = 4 + 4 * places.len() + text_size;
    let mut starts = Vec::new();
    let mut at = MAGIC.len() + HEADER_SIZE + index_size.next_multiple_of(2);
    for member in members {
        starts.push(u32::try_from(at).map_err(|_| "an archive of more than 4 GiB")?);
        at += HEADER_SIZE + member.bytes.len().next_multiple_of(2);
    }
    let mut index = (places.len() as u32).to_be_bytes().to_vec();
    places.iter().for_each(|(_, member)| index.extend(starts[*member].to_be_bytes()));
    places.iter().for_each(|(name, _)| index.extend([name.as_bytes(), &[0]].concat()));
    let mut archive = MAGIC.to_vec();
    let mut add = |name: &str, bytes: &[u8]| {
        archive.extend(format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, 644, bytes.len()).as_bytes());
        archive.extend(bytes);
        archive.extend([b'\n'].iter().take(bytes.len() % 2));
    };
    add("/", &index);
    members.iter().for_each(|member| add(&format!("{}/", member.name), &member.bytes));
    Ok(archive)
}

/// A symbol that an object defines for others.
struct Symbol {
    name: String,
    /// Where in the object its binding and kind stand.
    info_at: usize,
}

/// What an object of little-endian ELF defines.
fn symbols(object: &[u8]) -> Result<Vec<Symbol>, String> {
    let is_wide = match object.get(..6) {
        Some([0x7f, b'E', b'L', b'F', 1, 1]) => false,
        Some([0x7f, b'E', b'L', b'F', 2, 1]) => true,
        _ => return Err("no little-endian ELF object".to_owned()),
    };
    let number = |at: usize, size: usize| -> Result<usize, String> {
        let bytes = object.get(at..at + size).ok_or("an ELF object is cut short")?;
        Ok(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    // Places of fields in objects of 64 bits and of 32, and the size of a word.
    let (word, table_at, entry_size_at) = if is_wide { (8, 40, 58) } else { (4, 32, 46) };
    let (table, entry_size, count) =
        (number(table_at, word)?, number(entry_size_at, 2)?, number(entry_size_at + 2, 2)?);
    let section = |index: usize| table + index * entry_size;
    let extent = |at: usize| -> Result<(usize, usize), String> {
        Ok((number(at + 8 + 2 * word, word)?, number(at + 8 + 3 * word, word)?))
    };
    let mut found = Vec::new();
    for at in (0..count).map(section) {
        if number(at + 4, 4)? != SECTION_SYMBOLS as usize {
            continue;
        }
        let (start, size) = extent(at)?;
        let (names, _) = extent(section(number(at + 8 + 4 * word, 4)?))?;
        let (symbol_size, info, home) = if is_wide { (24, 4, 6) } else { (16, 12, 14) };
        for symbol in (start..start + size).step_by(symbol_size) {
            let binding = number(symbol + info, 1)? as u8 >> 4;
            if (binding == BINDING_GLOBAL || binding == BINDING_WEAK) && number(symbol + home, 2)? != 0 {
                let name = object.get(names + number(symbol, 4)?..).unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                found.push(Symbol { name: String::from_utf8_lossy(name).into_owned(), info_at: symbol + info });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object of 32 bits that defines a function and needs another.
    fn object(defines: &str, needs: &str) -> Vec<u8> {
        let names = format!("\0{defines}\0{needs}\0");
        let (symbols_at, names_at) = (52 + 3 * 40, 52 + 3 * 40 + 3 * 16);
        let mut object = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let mut put = |at: usize, bytes: &[u8]| {
            object.resize(object.len().max(at + bytes.len()), 0);
            object[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(32, &52_u32.to_le_bytes());
        put(46, &[40, 0, 3, 0, 2, 0]);
        for (section, kind, at, size, link) in [(1, 2, symbols_at, 48, 2), (2, 3, names_at, names.len(), 0)] {
            let start = 52 + section * 40;
            for (field, value) in [(4, kind), (16, at), (20, size), (24, link)] {
                put(start + field, &(value as u32).to_le_bytes());
            }
        }
        for (index, name, home) in [(1, 1, 1_u8), (2, 2 + defines.len(), 0)] {
            let start = symbols_at + index * 16;
            put(start, &(name as u32).to_le_bytes());
            put(start + 12, &[BINDING_GLOBAL << 4 | 2, 0, home, 0]);
        }
        put(names_at, names.as_bytes());
        object
    }

    fn library(objects: &[(&str, &str, &str)]) -> Vec<u8> {
        let member = |(name, defines, needs): &(&str, &str, &str)| Member {
            name: (*name).to_owned(),
            bytes: object(defines, needs),
        };
        write(&objects.iter().map(member).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn stores_come_first_and_weakly_and_what_they_need_comes_once() {
        let store = library(&[("nandu_capi-1.o", "nandu_store_open", "memcpy"), ("compiler.o", "memcpy", "x")]);
        let full = library(&[("nandu_capi-2.o", "nandu_store_open", "memcpy"), ("compiler.o", "memcpy", "x")]);
        let members = members_of(&join(&store, &full).unwrap()).unwrap();
        let said: Vec<_> = members
            .iter()
            .map(|member| {
                let [symbol] = &symbols(&member.bytes).unwrap()[..] else { panic!("one symbol is defined") };
                (member.name.as_str(), symbol.name.clone(), member.bytes[symbol.info_at] >> 4)
            })
            .collect();
        let expected =
            [("store0.o", "nandu_store_open", 2), ("nandu0.o", "nandu_store_open", 1), ("nandu1.o", "memcpy", 1)];
        assert_eq!(said, expected.map(|(name, symbol, binding)| (name, symbol.to_owned(), binding)));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let library = library(&[("nandu_capi-1.o", "nandu_store_open", "memcpy")]);
        assert!(join(b"", &library).is_err());
        assert!(join(&library[..library.len() - 9], &library).is_err());
        assert!(join(&library, b"!<arch>\n").is_ok());
    }
}
