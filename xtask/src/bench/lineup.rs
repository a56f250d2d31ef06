//! Subjects that are measured in turn.

use std::time::Duration;

use anyhow::Context as _;

use super::Options;
use super::sample::{Sample, Spread};
use super::subject::Subject;
use crate::report::line;
use crate::request::Request;

/// Subjects by name. The names of mcpd's own begin with `mcpd`.
#[derive(Debug)]
pub(crate) struct Lineup {
    rounds: usize,
    time: Duration,
    /// `None` for a subject that was excluded.
    subjects: Vec<(String, Option<Subject>)>,
}

/// Samples of each subject, one for each round.
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

    /// Loads each subject in turn, in alternating order.
    ///
    /// # Errors
    ///
    /// Fails if mcpd gives no answer or a wrong one. A peer that does is reported, and excluded
    /// from then on.
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
    /// Iterates over the subjects and their samples.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[Sample])> {
        let all = self.0.iter();
        all.map(|(name, samples)| (name.as_str(), samples.as_slice()))
    }

    fn of(&self, name: &str) -> anyhow::Result<&[Sample]> {
        let found = self.iter().find(|(subject, _)| *subject == name);
        let (_, samples) = found.with_context(|| format!("{name} was left out"))?;
        Ok(samples)
    }

    /// Returns a figure of this subject.
    ///
    /// # Errors
    ///
    /// Fails if the subject was excluded.
    pub(crate) fn figure(
        &self,
        name: &str,
        figure: impl Fn(&Sample) -> f64,
    ) -> anyhow::Result<Spread> {
        Ok(Spread::over(self.of(name)?, figure))
    }

    /// Returns a figure of several subjects, computed within each round.
    ///
    /// # Errors
    ///
    /// Fails if one of them was excluded.
    pub(crate) fn compare<const N: usize>(
        &self,
        names: [&str; N],
        figure: impl Fn([&Sample; N]) -> f64,
    ) -> anyhow::Result<Spread> {
        let subjects = names.into_iter().map(|name| self.of(name));
        let subjects: Vec<_> = subjects.collect::<Result<_, _>>()?;
        let rounds = subjects.iter().map(|samples| samples.len()).min();
        let round = |round: usize| figure(std::array::from_fn(|place| &subjects[place][round]));
        Ok(Spread::of((0..rounds.unwrap_or_default()).map(round)))
    }

    /// Returns a figure of one subject divided by that of another, within each round.
    ///
    /// # Errors
    ///
    /// Fails if one of them was excluded.
    pub(crate) fn ratio(
        &self,
        this: &str,
        that: &str,
        figure: impl Fn(&Sample) -> f64,
    ) -> anyhow::Result<Spread> {
        Ok(Spread::ratio(self.of(this)?, self.of(that)?, figure))
    }
}
