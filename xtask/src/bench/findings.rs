//! Findings of a measurement: tables for people, and bars that are met or missed.

use std::fmt;

use super::sample::Spread;
use crate::report::line;

/// Findings of one or more suites.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Tables by the names of their places in docs/performance.md.
    pub(crate) tables: Vec<(&'static str, Table)>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) curves: Vec<Curve>,
    pub(crate) growths: Vec<Growth>,
}

/// Markdown table.
#[derive(Debug, Clone)]
pub(crate) struct Table(String);

/// Required bound of a figure.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    what: String,
    bound: Bound,
    unit: &'static str,
    measured: Spread,
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Speed of a server at increasing concurrency.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// Kind of request.
    pub(crate) panel: &'static str,
    pub(crate) server: String,
    pub(crate) points: Vec<Point>,
}

/// Point of a curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) at_once: usize,
    /// Answers per second.
    pub(crate) rate: f64,
    /// Median latency in µs.
    pub(crate) median: f64,
    /// 99th percentile of the latency in µs.
    pub(crate) most: f64,
}

/// Growth of a figure with the amount of work.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    /// Figure, its unit, and the work.
    pub(crate) panel: &'static str,
    pub(crate) name: &'static str,
    /// Amounts of work, and medians.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Growth {
    pub(crate) fn new(panel: &'static str, name: &'static str) -> Self {
        let points = Vec::new();
        Self {
            panel,
            name,
            points,
        }
    }

    pub(crate) fn add(&mut self, work: usize, measured: Spread) {
        self.points.push((work as f64, measured.median));
    }
}

impl Findings {
    pub(crate) fn table(&mut self, name: &'static str, table: Table) {
        self.tables.push((name, table));
    }

    /// Requires a figure of at least this.
    pub(crate) fn at_least(&mut self, what: impl Into<String>, bound: f64, measured: Spread) {
        self.bar(what, Bound::AtLeast(bound), "", measured);
    }

    /// Requires a figure of at most this.
    pub(crate) fn at_most(
        &mut self,
        what: impl Into<String>,
        bound: f64,
        unit: &'static str,
        measured: Spread,
    ) {
        self.bar(what, Bound::AtMost(bound), unit, measured);
    }

    fn bar(&mut self, what: impl Into<String>, bound: Bound, unit: &'static str, measured: Spread) {
        let what = what.into();
        self.bars.push(Bar {
            what,
            bound,
            unit,
            measured,
        });
    }

    /// Prints the tables.
    pub(crate) fn print(&self) {
        for (name, table) in &self.tables {
            line(format_args!("{name}\n\n{table}"));
        }
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.tables.append(&mut others.tables);
        self.bars.append(&mut others.bars);
        self.curves.append(&mut others.curves);
        self.growths.append(&mut others.growths);
    }

    /// Returns whether every bar was met.
    pub(crate) fn are_met(&self) -> bool {
        self.bars.iter().all(Bar::is_met)
    }

    /// Returns a table of all bars.
    pub(crate) fn bars(&self) -> Table {
        let mut table = Table::new(["what", "bar", "measured", ""]);
        for bar in &self.bars {
            let (sign, bound) = match bar.bound {
                Bound::AtLeast(bound) => ('≥', bound),
                Bound::AtMost(bound) => ('≤', bound),
            };
            table.row([
                bar.what.clone(),
                format!("{sign} {bound} {}", bar.unit).trim_end().to_owned(),
                bar.measured.to_string(),
                if bar.is_met() { "met" } else { "**missed**" }.to_owned(),
            ]);
        }
        table
    }
}

impl Bar {
    /// Returns whether the median reaches the bar.
    fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.measured.median >= bound,
            Bound::AtMost(bound) => self.measured.median <= bound,
        }
    }
}

impl Table {
    pub(crate) fn new<T: fmt::Display>(header: impl IntoIterator<Item = T>) -> Self {
        let mut table = Self(String::new());
        table.row(header);
        let columns = table.0.matches('|').count() - 1;
        table.0 += &format!("{}|\n", "|---".repeat(columns));
        table
    }

    pub(crate) fn row<T: fmt::Display>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.0.push('|');
        for cell in cells {
            self.0 += &format!(" {cell} |");
        }
        self.0.push('\n');
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
