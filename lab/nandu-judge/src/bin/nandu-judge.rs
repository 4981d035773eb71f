//! Measures promises and prints the table; `cargo xtask promises` calls it with what it measured itself.

use std::error::Error;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::process::ExitCode;

use nandu_judge::{Form, Given, Judge, Promises, rows, table};

const USAGE: &str = "usage: nandu-judge PROMISES [--only ID].. [--full] [--lives FROM..TO] [--json] [--given]";

/// What is asked for.
struct Asked {
    path: String,
    only: Vec<String>,
    form: Form,
    /// Seeds of the random lives, if not all of the form.
    lives: Option<Range<u64>>,
    is_json: bool,
    /// What was measured elsewhere comes from the standard input.
    is_given: bool,
}

fn asked(arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        path: String::new(),
        only: Vec::new(),
        form: Form::Short,
        lives: None,
        is_json: false,
        is_given: false,
    };
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        let mut value = |what: &str| arguments.next().ok_or_else(|| format!("{word} takes {what}"));
        match word.as_str() {
            "--only" => asked.only.push(value("the id of a promise")?),
            "--full" => asked.form = Form::Full,
            "--lives" => asked.lives = Some(seeds(&value("FROM..TO")?)?),
            "--json" => asked.is_json = true,
            "--given" => asked.is_given = true,
            _ if asked.path.is_empty() && !word.starts_with('-') => asked.path = word,
            _ => return Err(format!("`{word}` is not known\n{USAGE}")),
        }
    }
    if asked.path.is_empty() { Err(USAGE.to_owned()) } else { Ok(asked) }
}

/// The first and the one behind the last of some seeds.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.filter(|seeds| !seeds.is_empty()).ok_or_else(|| format!("`{text}` is no range of seeds, as 0..500"))
}

fn run(asked: &Asked) -> Result<Vec<String>, Box<dyn Error>> {
    let text = fs::read_to_string(&asked.path).map_err(|error| format!("{}: {error}", asked.path))?;
    let promises = Promises::parse(&text)?.only(&asked.only)?;
    let mut given = String::new();
    if asked.is_given {
        std::io::stdin().read_to_string(&mut given)?;
    }
    let mut judge = Judge::new(asked.form, Given::parse(&given)?);
    if let Some(seeds) = &asked.lives {
        judge = judge.with_lives(seeds.clone());
    }
    let rows = rows(&judge, &promises)?;
    if asked.is_json {
        rows.iter().for_each(|row| println!("{}", row.to_json()));
    } else {
        print!("{}", table(&rows));
    }
    Ok(rows.iter().filter_map(|row| row.failure()).collect())
}

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("nandu-judge: {message}");
            return ExitCode::from(2);
        }
    };
    match run(&asked) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|failure| eprintln!("nandu-judge: {failure}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("nandu-judge: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn a_range_of_lives_is_taken_and_anything_else_refused() {
        let of = |words: &str| asked(words.split(' ').map(str::to_owned));
        assert_eq!(of("promises.toml --full --lives 20..500").unwrap().lives, Some(20..500));
        assert_eq!(of("promises.toml").unwrap().lives, None);
        for wrong in ["5", "5..", "..5", "5..5", "9..5", "a..b"] {
            assert!(
                of(&format!("promises.toml --lives {wrong}")).is_err_and(|why| why.contains("no range of seeds")),
                "{wrong}"
            );
        }
    }
}
