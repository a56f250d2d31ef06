//! Filter of mcpd's own log.

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

/// Libraries that are silent unless the filter names them. At `info` and below, rmcp logs the
/// messages it exchanges, with their secrets. mcpd logs the other events of both itself.
const SILENT: [&str; 2] = ["rmcp", "async_nats"];

/// Parses a log filter, and silences some libraries unless the filter names them.
///
/// # Errors
///
/// The filter can't be parsed.
pub fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    let mut parsed = EnvFilter::try_new(filter)
        .map_err(|error| anyhow!("read the log filter `{filter}`: {error}"))?;
    for library in SILENT {
        if !filter.split(',').any(|one| one.starts_with(library)) {
            parsed = parsed.add_directive(format!("{library}=off").parse()?);
        }
    }
    Ok(parsed)
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
    fn libraries_are_silent_unless_the_filter_names_them() {
        check("info", "async_nats=off,info,rmcp=off");
        check("5", "async_nats=off,rmcp=off,trace");
        check("mcpd=trace,info", "async_nats=off,info,mcpd=trace,rmcp=off");
        check("rmcp=debug,info", "async_nats=off,info,rmcp=debug");
        check(
            "info,rmcp::service=trace",
            "async_nats=off,info,rmcp::service=trace",
        );
        check("async_nats=debug", "async_nats=debug,rmcp=off");
    }
}
