//! `exact2048 completions`: what a shell completes after the program's name.

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

A new shell knows them. zsh looks for them in the folders of its fpath.")]
pub struct Args {
    /// The shell that is to complete
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a script for the shell.
pub fn main(args: &Args) -> Result<()> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    // In one piece: the generator does not expect a reader that leaves.
    Ok(io::stdout().write_all(&script)?)
}
