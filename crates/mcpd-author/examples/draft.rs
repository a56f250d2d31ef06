//! Drafts the description of a program from its help, and prints it:
//! `cargo run --package mcpd-author --example draft -- PROGRAM`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints its result"
)]

use std::env;

use anyhow::Context as _;
use mcpd_author::adopt::{Adoption, Subcommands};
use mcpd_exec::{Config, Executor};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let program = env::args().nth(1).context("name a program")?;
    let executor = Executor::new(Config::default())?;
    let remark = |text: &str| eprintln!("{text}");
    let mut adoption = Adoption::new(executor, &remark);
    adoption.adopt(&program, Subcommands::LeftOut).await?;
    for draft in adoption.drafts() {
        print!("{}", draft.text());
    }
    Ok(())
}
