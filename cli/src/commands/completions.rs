//! `exact2048 completions`: completion scripts for shells.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;

/// Options of `completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 completions bash > ~/.local/share/bash-completion/completions/exact2048
  exact2048 completions zsh > ~/.zfunc/_exact2048
  exact2048 completions fish > ~/.config/fish/completions/exact2048.fish

Completions work in the next shell that you start. zsh searches the folders of its fpath.")]
pub struct Args {
    /// Generate the script for this shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a script for the shell.
pub fn main(args: &Args) -> Result<()> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    // Writes the script to memory first, because the generator panics if the reader closes the pipe.
    Ok(io::stdout().write_all(&script)?)
}
