//! Differences between the styles of help, as data: words of parsers, headings and types.

/// Phrases by which a library for command lines gives itself away, all of which accept
/// `--flag=value` for each flag with two dashes.
pub(super) const JOINING: &[&str] = &[
    // argparse, optparse
    "show this help message and exit",
    // click
    CLICK,
    // clap
    "Print help",
    "Prints help information",
    // cobra
    "for more information about a command",
    "help for ",
    // commander
    "display help for command",
    "output usage information",
    // yargs
    "Show help  ",
    // getopt_long: the sentence of the GNU coding standards
    "Mandatory arguments to long options are mandatory for short options too",
    "display this help and exit",
    "Show this help",
    "give this help list",
];

/// Phrase of click.
pub(super) const CLICK: &str = "Show this message and exit.";

/// Spellings of flags that print help or the version.
pub(super) const ABOUT_PROGRAM: &[&str] = &["--help", "-help", "--version", "--usage"];

/// Headings, in lower case, above arguments without a flag.
pub(super) const OPERAND_HEADINGS: &[&str] = &[
    "positional arguments",
    "positionals",
    "arguments",
    "args",
    "operands",
    "parameters",
];

/// A word in headings, in lower case, above sub-commands.
pub(super) const COMMAND_HEADING: &str = "command";

/// Names of values, in lower case, that are whole numbers.
pub(super) const INTEGERS: &[&str] = &[
    "int", "integer", "int32", "int64", "uint", "uint16", "uint32", "uint64", "n", "num", "count",
    "port", "+int", "nonneg",
];

/// Names of values, in lower case, that are numbers.
pub(super) const NUMBERS: &[&str] = &["float", "float32", "float64", "double"];

/// Names of values, in lower case, that may be given several times.
pub(super) const LISTS: &[&str] = &["strings", "stringarray", "stringslice", "ints", "list"];

/// Types in brackets behind a description, as yargs prints them: the word, and whether a flag of
/// this type has a value.
pub(super) const BRACKETED: &[(&str, bool)] = &[
    ("[string]", true),
    ("[number]", true),
    ("[array]", true),
    ("[boolean]", false),
    ("[count]", false),
];

/// Phrases, in lower case, about a flag that may stand several times.
pub(super) const REPEATED: &[&str] = &[
    "multiple times",
    "more than once",
    "can be repeated",
    "may be repeated",
    "be given several times",
    "repeatable",
    "[array]",
];

/// Words of a usage line, in lower case, that stand for flags and sub-commands.
pub(super) const PLACEHOLDERS: &[&str] = &[
    "option",
    "options",
    "flag",
    "flags",
    "opts",
    "command",
    "commands",
    "subcommand",
    "cmd",
    "opt",
    "global options",
    "global flags",
    "command options",
];
