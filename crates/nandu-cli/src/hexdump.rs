//! Bytes in hexadecimal and, where they are text, as text.

use std::io;

use crate::output::Output;

const LINE_SIZE: usize = 16;

/// Prints lines of sixteen bytes with the column of the first; lines that repeat the one above are one `*`.
pub(crate) fn print(bytes: &[u8], first_column: u32, out: &mut Output) -> io::Result<()> {
    let mut above: Option<&[u8]> = None;
    let mut repeats = false;
    for (number, line) in bytes.chunks(LINE_SIZE).enumerate() {
        if above == Some(line) {
            if !repeats {
                writeln!(out, "*")?;
            }
            repeats = true;
            continue;
        }
        (above, repeats) = (Some(line), false);
        writeln!(out, "{}", line_of(line, first_column as usize + number * LINE_SIZE))?;
    }
    writeln!(out, "{:08x}", first_column as usize + bytes.len())
}

fn line_of(bytes: &[u8], column: usize) -> String {
    let mut hex = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        hex.push_str(if at == LINE_SIZE / 2 { "  " } else { " " });
        hex.push_str(&format!("{byte:02x}"));
    }
    let printable = |byte: u8| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '.' };
    let text: String = bytes.iter().copied().map(printable).collect();
    format!("{column:08x} {hex:<49}  |{text}|")
}

/// Bytes as digits, without spaces.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn a_line_has_its_column_its_bytes_and_its_text() {
        assert_eq!(
            line_of(b"0123456789abcde\x7f", 0x20),
            "00000020  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 7f  |0123456789abcde.|"
        );
        assert_eq!(line_of(&[0xFF], 0), "00000000  ff                                                |.|");
    }
}
