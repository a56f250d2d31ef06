//! Metrics without their feature: nothing is counted.

use std::sync::Arc;

use mcpd_exec::Outcome;

use crate::admission::Refused;
use crate::dispatch::MethodResult;
use crate::run::RunError;

#[derive(Debug)]
pub(crate) struct Metrics;

#[derive(Debug, Clone, Default)]
pub(crate) struct Operation;

#[derive(Debug)]
pub(crate) struct Run;

#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) struct Open;

impl Metrics {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn operation(self: &Arc<Self>, _method: &'static str) -> Operation {
        Operation
    }

    pub(crate) fn refused(&self, _reason: Refused) {}

    pub(crate) fn run(&self) -> Run {
        Run
    }

    #[cfg(feature = "http")]
    pub(crate) fn connection(&self) -> Open {
        Open
    }

    #[cfg(feature = "http")]
    pub(crate) fn session(&self) -> Open {
        Open
    }
}

impl Operation {
    pub(crate) fn names(&self, _path: &str) {}

    pub(crate) fn has_failed(&self) {}

    pub(crate) fn answered(&self, _result: &MethodResult) {}
}

impl Run {
    pub(crate) fn ended(self, _ended: &Result<Outcome, RunError>) {}
}
