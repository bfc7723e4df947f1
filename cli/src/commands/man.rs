//! `exact2048 man`: manual pages of the commands.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use crate::Cli;
use crate::help::with_place_of_pages;

/// Options of `man`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 man | man -l -
  exact2048 man --out ~/.local/share/man/man1")]
pub struct Args {
    /// Write exact2048.1 and a page for each command into this folder, which is created if needed
    #[arg(long, short, value_name = "DIR", value_parser = crate::parsing::local_path())]
    out: Option<PathBuf>,
}

/// Removes `help` and its subcommands, whose pages would be empty.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Prints the page of the program, or writes the pages of all commands.
pub fn main(args: &Args) -> Result<()> {
    let mut command = with_place_of_pages(without_help(Cli::command()));
    command.build();
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return Ok(io::stdout().write_all(&page)?);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))
}
