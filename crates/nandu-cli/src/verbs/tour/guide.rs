//! What the tour says, step by step.

use std::io;

use anstyle::{AnsiColor, Style};

use crate::output::Output;

const INDENT: &str = "   ";

/// Longest line of prose; longer ones are hard to read.
const WIDTH_MAX: usize = 88;

/// Prints the steps for people; for programs it says nothing.
pub(super) struct Guide<'a> {
    pub(super) out: &'a mut Output,
    step: u32,
}

impl<'a> Guide<'a> {
    pub(super) fn new(out: &'a mut Output) -> Guide<'a> {
        Guide { out, step: 0 }
    }

    pub(super) fn width(&self) -> usize {
        self.out.width().min(WIDTH_MAX)
    }

    /// What it is all about.
    pub(super) fn title(&mut self, title: &str) -> io::Result<()> {
        let style = self.out.style(Style::new().bold());
        self.line(&format!("{style}{title}{style:#}"))
    }

    /// Begins a step.
    pub(super) fn step(&mut self, title: &str) -> io::Result<()> {
        self.step += 1;
        if self.out.is_json() {
            return Ok(());
        }
        let style = self.out.style(AnsiColor::Cyan.on_default().bold());
        writeln!(self.out, "\n{style}{}  {title}{style:#}", self.step)?;
        self.out.flush()
    }

    /// Says a few sentences, wrapped.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.prose(text, Style::new())
    }

    /// Says what it has come to.
    pub(super) fn conclude(&mut self, text: &str) -> io::Result<()> {
        self.prose(text, AnsiColor::Green.on_default())
    }

    /// A line as it is.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        if self.out.is_json() {
            return Ok(());
        }
        writeln!(self.out, "{INDENT}{text}")?;
        self.out.flush()
    }

    /// A line that matters less.
    pub(super) fn aside(&mut self, text: &str) -> io::Result<()> {
        self.prose(text, Style::new().dimmed())
    }

    /// Lines of a table.
    pub(super) fn table(&mut self, table: &str) -> io::Result<()> {
        for (number, line) in table.lines().enumerate() {
            let style = if number == 0 { Style::new().dimmed() } else { Style::new() };
            let style = self.out.style(style);
            self.line(&format!("{style}{line}{style:#}"))?;
        }
        Ok(())
    }

    fn prose(&mut self, text: &str, style: Style) -> io::Result<()> {
        let style = self.out.style(style);
        for line in wrapped(text, self.width() - INDENT.len()) {
            self.line(&format!("{style}{line}{style:#}"))?;
        }
        Ok(())
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_as_long_as_fits_and_no_word_is_lost() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("muchtoolong is one", 5), ["muchtoolong", "is", "one"]);
    }
}
