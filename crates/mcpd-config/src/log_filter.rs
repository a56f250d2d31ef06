//! Filter of mcpd's own log.

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

/// Parses a log filter, and silences rmcp unless the filter names it: at `info` and below, rmcp
/// logs the messages it exchanges, with their secrets.
///
/// # Errors
///
/// The filter can't be parsed.
pub fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    let parsed = EnvFilter::try_new(filter)
        .map_err(|error| anyhow!("read the log filter `{filter}`: {error}"))?;
    // mcpd logs the same events itself.
    if filter.split(',').any(|one| one.starts_with("rmcp")) {
        return Ok(parsed);
    }
    Ok(parsed.add_directive("rmcp=off".parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: &str, expected: &str) {
        let read = parse(filter).unwrap().to_string();
        let mut directives: Vec<_> = read.split(',').collect();
        directives.sort_unstable();
        assert_eq!(directives.join(","), expected);
    }

    #[test]
    fn rmcp_is_silent_unless_the_filter_names_it() {
        check("info", "info,rmcp=off");
        check("5", "rmcp=off,trace");
        check("mcpd=trace,info", "info,mcpd=trace,rmcp=off");
        check("rmcp=debug,info", "info,rmcp=debug");
        check("info,rmcp::service=trace", "info,rmcp::service=trace");
    }
}
