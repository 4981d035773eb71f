//! Keys and values as people and programs write them.

use serde_json::{Map, Value};

use crate::failure::usage;
use crate::hexdump;

/// The bytes that an argument stands for: its own, or those its hexadecimal digits name.
pub(crate) fn argument(text: &str, is_hex: bool) -> anyhow::Result<Vec<u8>> {
    if !is_hex {
        return Ok(text.as_bytes().to_vec());
    }
    match from_digits(text.as_bytes()) {
        Some(bytes) => Ok(bytes),
        None => usage(format!("'{text}' is not pairs of hexadecimal digits")),
    }
}

/// Bytes from pairs of hexadecimal digits.
pub(crate) fn from_digits(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// Adds bytes to a JSON object: as `name` where they are text, else as `name_hex`.
pub(crate) fn insert(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_hex"), hexdump::digits(bytes).into()),
    };
}

/// A record as a JSON object.
pub(crate) fn json(key: &[u8], value: &[u8]) -> Value {
    let mut object = Map::new();
    insert(&mut object, "key", key);
    insert(&mut object, "value", value);
    Value::Object(object)
}

/// Bytes on one line of a terminal: what is no printable text is shown as `\x..`. Not meant to be read back.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut line = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                line.extend(character.to_string().bytes().map(|byte| format!("\\x{byte:02x}")));
            } else {
                line.push(character);
            }
        }
        line.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_in_pairs_and_nothing_else_is() {
        assert_eq!(from_digits(b"00fF7a"), Some(vec![0, 0xFF, 0x7A]));
        assert_eq!(from_digits(b""), Some(vec![]));
        for wrong in ["0", "0g", "0x00", "+1", "\u{e9}"] {
            assert_eq!(from_digits(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_text_cannot_disturb_a_terminal() {
        assert_eq!(shown("caf\u{e9}\t\x1b[31m".as_bytes()), "caf\u{e9}\\x09\\x1b[31m");
        assert_eq!(shown(b"a\xff\x00b"), "a\\xff\\x00b");
        assert_eq!(json(b"a", b"\xff").to_string(), r#"{"key":"a","value_hex":"ff"}"#);
    }
}
