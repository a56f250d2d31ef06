//! Subjects that take turns.

use std::time::Duration;

use anyhow::Context as _;

use super::Options;
use super::sample::{Sample, Spread};
use super::subject::Subject;
use crate::report::line;
use crate::request::Request;

/// Subjects by their names. The names of mcpd's own begin with `mcpd`.
#[derive(Debug)]
pub(crate) struct Lineup {
    rounds: usize,
    time: Duration,
    /// None is left of one that was left out.
    subjects: Vec<(String, Option<Subject>)>,
}

/// What was measured of each subject, round by round.
#[derive(Debug)]
pub(crate) struct Samples(Vec<(String, Vec<Sample>)>);

impl Lineup {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            rounds: options.rounds(),
            time: options.time(),
            subjects: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, name: impl Into<String>, subject: Subject) {
        self.subjects.push((name.into(), Some(subject)));
    }

    /// Loads each of them in turn, every other time in the opposite order.
    ///
    /// # Errors
    ///
    /// When mcpd gives no answer or a wrong one. A peer that does is told of, and left out from then on.
    pub(crate) async fn load(
        &mut self,
        request: &Request,
        at_once: usize,
    ) -> anyhow::Result<Samples> {
        let mut samples = vec![Vec::new(); self.subjects.len()];
        for round in 0..self.rounds {
            let mut turns: Vec<_> = self.subjects.iter_mut().zip(&mut samples).collect();
            if round % 2 == 1 {
                turns.reverse();
            }
            for ((name, subject), samples) in turns {
                let Some(running) = subject else { continue };
                match running.load(request, at_once, self.time).await {
                    Ok(sample) => samples.push(sample),
                    Err(error) if name.starts_with("mcpd") => {
                        return Err(error.context(name.clone()));
                    }
                    Err(error) => {
                        line(format_args!("*** {name} IS LEFT OUT: {error:#}"));
                        *subject = None;
                    }
                }
            }
        }
        let all = self.subjects.iter().zip(samples);
        let samples = all
            .filter(|((_, subject), _)| subject.is_some())
            .map(|((name, _), samples)| (name.clone(), samples))
            .collect();
        Ok(Samples(samples))
    }
}

impl Samples {
    /// All subjects with what was measured of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[Sample])> {
        let all = self.0.iter();
        all.map(|(name, samples)| (name.as_str(), samples.as_slice()))
    }

    fn of(&self, name: &str) -> anyhow::Result<&[Sample]> {
        let found = self.iter().find(|(subject, _)| *subject == name);
        let (_, samples) = found.with_context(|| format!("{name} was left out"))?;
        Ok(samples)
    }

    /// A figure of this subject.
    ///
    /// # Errors
    ///
    /// When it was left out.
    pub(crate) fn figure(
        &self,
        name: &str,
        figure: impl Fn(&Sample) -> f64,
    ) -> anyhow::Result<Spread> {
        Ok(Spread::over(self.of(name)?, figure))
    }

    /// A figure of one subject divided by that of another, within each round.
    ///
    /// # Errors
    ///
    /// When one of them was left out.
    pub(crate) fn ratio(
        &self,
        this: &str,
        that: &str,
        figure: impl Fn(&Sample) -> f64,
    ) -> anyhow::Result<Spread> {
        Ok(Spread::ratio(self.of(this)?, self.of(that)?, figure))
    }
}
