//! How a command ends when it does not succeed: one line on the error stream, and the exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::fstab::{End, Role};

/// The user asked for something that cannot be asked for; a verb returns it for what clap cannot check.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// A verb that did its work ends with a code of its own, and this line.
#[derive(Debug)]
pub(crate) struct Ending {
    code: u8,
    message: String,
}

impl Ending {
    pub(crate) fn new(code: u8, message: String) -> Ending {
        Ending { code, message }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Ending {}

/// Ends a verb with a [`UsageError`].
pub(crate) fn usage<T>(message: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError(message.into()).into())
}

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Help or version was asked for and is the output.
    Help(clap::Error),
    /// Wrong use.
    Usage(String),
    /// Anything else that went wrong.
    Failed(anyhow::Error),
    /// A verb chose its exit code.
    Ended(Ending),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        let closed = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(closed) {
            return Failure::OutputClosed;
        }
        match error.downcast::<UsageError>() {
            Ok(UsageError(message)) => Failure::Usage(message),
            Err(error) => error.downcast::<Ending>().map_or_else(Failure::Failed, Failure::Ended),
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Failure {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Failure::Help(error),
            _ => Failure::Usage(one_line(&error)),
        }
    }
}

impl Failure {
    /// Says it in one line and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (line, code) = match self {
            Failure::Help(error) => {
                // A reader that closes the pipe has read enough of the help.
                let _ = error.print();
                return ExitCode::SUCCESS;
            }
            Failure::OutputClosed => return ExitCode::SUCCESS,
            Failure::Usage(message) => (message, Role::here().code(End::Usage)),
            Failure::Ended(ending) => (ending.message, ending.code),
            Failure::Failed(error) => (format!("{error:#}"), Role::here().code(End::Failed)),
        };
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        // There is no better place to say that the error stream is closed.
        let _ = writeln!(io::stderr(), "nandu: {line}");
        ExitCode::from(code)
    }
}

/// What clap says in a paragraph, in one line: the message, what was probably meant, and where to read on.
fn one_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let mut line = match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing".to_owned()
        }
        _ => {
            let message = rendered.split("\n\n").next().unwrap_or_default();
            message.strip_prefix("error: ").unwrap_or(message).to_owned()
        }
    };
    let similar = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(name)) => Some(name),
            // The most similar comes last.
            Some(ContextValue::Strings(names)) => names.last(),
            _ => None,
        });
    if let Some(name) = similar {
        line.push_str(&format!(" (did you mean '{name}'?)"));
    }
    line.push_str(&format!("; see '{} --help'", verb_of(std::env::args().skip(1))));
    line
}

/// The verb that a command line names, as far as it names one.
fn verb_of(arguments: impl Iterator<Item = String>) -> String {
    let mut name = "nandu".to_owned();
    let mut command = Cli::command();
    for word in arguments.filter(|word| !word.starts_with('-')) {
        let Some(verb) = command.find_subcommand(&word) else { break };
        name = format!("{name} {word}");
        command = verb.clone();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::verb_of;

    #[test]
    fn the_hint_names_the_verb_as_far_as_there_is_one() {
        let verb = |line: &str| verb_of(line.split_whitespace().map(str::to_owned));
        assert_eq!(verb(""), "nandu");
        assert_eq!(verb("crate x"), "nandu");
        assert_eq!(verb("--json raw erase x info"), "nandu raw erase");
    }
}
