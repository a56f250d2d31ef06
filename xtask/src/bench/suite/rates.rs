//! Absolute speed of all subjects.

use indexmap::IndexMap;

use crate::bench::findings::{Curve, Findings, Point, Table};
use crate::bench::lineup::Samples;
use crate::bench::sample::{Sample, Spread, number};

/// Rates and latencies of every subject.
#[derive(Debug)]
pub(crate) struct Rates {
    panel: &'static str,
    servers: IndexMap<String, Vec<(Point, f64)>>,
}

impl Rates {
    /// Makes an empty collection for this kind of request.
    pub(crate) fn new(panel: &'static str) -> Self {
        Self {
            panel,
            servers: IndexMap::new(),
        }
    }

    /// Adds the samples at this concurrency.
    pub(crate) fn add(&mut self, at_once: usize, samples: &Samples) {
        for (name, samples) in samples.iter() {
            let median = |figure: &dyn Fn(&Sample) -> f64| Spread::over(samples, figure).median;
            let point = Point {
                at_once,
                rate: median(&Sample::rate),
                median: median(&|sample| sample.within(0.5)),
                most: median(&|sample| sample.within(0.99)),
            };
            let points = self.servers.entry(name.to_owned()).or_default();
            points.push((point, median(&Sample::cpu)));
        }
    }

    /// Adds a table of that name with a row for each subject, and its curves.
    pub(crate) fn report(self, name: &'static str, findings: &mut Findings) {
        let mut table = Table::new([
            "",
            "at a time",
            "a second",
            "median, µs",
            "99 %, µs",
            "server's CPU, µs",
        ]);
        for (server, points) in self.servers {
            for (point, cpu) in &points {
                table.row([
                    server.clone(),
                    point.at_once.to_string(),
                    number(point.rate),
                    number(point.median),
                    number(point.most),
                    if *cpu > 0.0 {
                        number(*cpu)
                    } else {
                        "–".to_owned()
                    },
                ]);
            }
            findings.curves.push(Curve {
                panel: self.panel,
                server,
                points: points.into_iter().map(|(point, _)| point).collect(),
            });
        }
        findings.table(name, table);
    }
}
