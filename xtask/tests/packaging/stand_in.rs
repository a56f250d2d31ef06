//! Stand-in for mcpd in packages: small, and quickly compiled. It has the commands that packaging
//! asks a binary for, and some for what a launcher passes on.

use std::io::{Read as _, Write as _};
use std::time::Duration;
use std::{env, io, process, thread};

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--version"] => println!("mcpd 0.0.0"),
        ["help"] => println!("Commands:\n  completions  Print\n  man          Print"),
        ["man", directory] => {
            std::fs::create_dir_all(directory).expect("a directory");
            let page = std::path::Path::new(directory).join("mcpd.1");
            std::fs::write(page, ".TH mcpd 1\n").expect("a page");
        }
        ["completions", shell] => println!("# completions for {shell}"),
        ["echo"] => {
            let mut input = String::new();
            io::stdin().read_to_string(&mut input).expect("UTF-8");
            print!("{input}");
        }
        ["exit", code] => process::exit(code.parse().expect("a number")),
        ["wait"] => {
            println!("{}", process::id());
            io::stdout().flush().expect("a reader");
            thread::sleep(Duration::from_secs(60));
        }
        _ => process::exit(1),
    }
}
