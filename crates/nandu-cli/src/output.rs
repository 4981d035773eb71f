//! What a verb prints: text for people, or JSON for programs.

use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use serde_json::Value;

/// Columns when the output is not a terminal and nobody said how wide it is.
const WIDTH_DEFAULT: usize = 80;

/// Standard output. A closed pipe comes back as an error, never as a panic.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    json: bool,
    color: bool,
    width: usize,
}

impl Output {
    pub(crate) fn to_stdout(json: bool) -> Output {
        let color = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = columns.or_else(terminal).unwrap_or(WIDTH_DEFAULT).clamp(40, 400);
        Output { stdout: BufWriter::new(io::stdout()), json, color, width }
    }

    /// Whether JSON was asked for.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Columns that a line may take.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The style if colours are shown, else none.
    pub(crate) fn style(&self, style: Style) -> Style {
        if self.color { style } else { Style::new() }
    }

    /// One value as one line of JSON.
    pub(crate) fn json(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.stdout, "{value}")
    }

    /// For `write!` and `writeln!`.
    pub(crate) fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        self.stdout.write_fmt(arguments)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// What CSV and the like are written to.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.stdout
    }

    /// Writes out what is buffered, so that it is seen and an error does not go unnoticed.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}
