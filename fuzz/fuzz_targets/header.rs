//! TOML headers of scripts, and the table of mcpd in those of PEP 723.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let text = mcpd_fuzz::lines("# ", text);
    mcpd_fuzz::read("a.py", &format!("# /// mcpd\n{text}\n# ///\n"));
    mcpd_fuzz::read(
        "a.py",
        &format!("# /// script\n# [tool.mcpd]\n{text}\n# ///\n"),
    );
});
