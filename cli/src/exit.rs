//! Printing of errors, and exit codes of all commands. Code 2 means wrong usage, or that a given location has other
//! contents. Code 3 means an unreachable state, 130 an interruption, and 1 any other failure.

use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use exact2048_solution::{QueryError, RunError};
use exact2048_storage as storage;
use exact2048_text::with_causes;

use crate::failure::Failure;
use crate::help::{PAGE, PLACE_OF_PAGES};
use crate::{display, network, remedy};

/// An error with its causes and its remedy, on one line.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = with_causes(&**error);
    if text.contains(PAGE) {
        text.push_str(&format!(" ({PLACE_OF_PAGES})"));
    }
    if let Some(remedy) = remedy::of(error) {
        text.push_str(&format!(" ({remedy})"));
    }
    text
}

const CANNOT_WRITE: &str = "cannot write to stdout: ";

/// Prints an error to stderr and returns its exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // The reader closed the pipe, as in `exact2048 layers | head`.
        return ExitCode::SUCCESS;
    }
    let mut message = text(error);
    if error.is::<io::Error>() && error.chain().count() == 1 {
        // Every other error names its file.
        message.insert_str(0, CANNOT_WRITE);
    }
    if !message.is_empty() {
        display::print_note(&format!("error: {message}"));
    }
    ExitCode::from(code(error))
}

/// Prints clap's error or the requested help, and returns the exit code.
pub fn report_usage(error: &clap::Error) -> ExitCode {
    let is_asked_for = !error.use_stderr();
    if is_asked_for || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed pipe is not an error: the reader has enough.
        if let Err(failed) = error.print()
            && failed.kind() != io::ErrorKind::BrokenPipe
        {
            display::print_note(&format!("error: {CANNOT_WRITE}{failed}"));
            return ExitCode::FAILURE;
        }
    } else {
        // Prints the error without colours, because colour sequences are indistinguishable from sequences in arguments.
        for line in error.render().to_string().trim_end().lines() {
            display::print_note(line);
        }
    }
    ExitCode::from(if is_asked_for { 0 } else { 2 })
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The exit code of an error.
pub fn code(error: &anyhow::Error) -> u8 {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code;
    }
    match error.downcast_ref::<QueryError>() {
        Some(QueryError::Unreachable { .. }) => return 3,
        Some(QueryError::Board(_)) => return 2,
        _ => {}
    }
    if network::is_usage(error) {
        return 2;
    }
    let is_usage = match error.downcast_ref::<RunError>() {
        Some(RunError::Params(_)) => true,
        // The given location has other contents.
        _ => remedy::kind(error).is_some_and(|(kind, _)| kind == storage::ErrorKind::Occupied),
    };
    if is_usage { 2 } else { 1 }
}
