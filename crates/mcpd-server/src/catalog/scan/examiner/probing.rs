//! Probe of a script, and the classification of its result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use mcpd_scriptspec::{Diagnostic, parse};

use super::{Answer, Examiner, Looked, PATIENCE, Refusal, Unasked};
use crate::catalog::scan::files::Because;
use crate::catalog::scan::probe::{self, HelpText};
use crate::catalog::walk::Candidate;
use crate::launch::Launch;

impl Examiner {
    /// Probes a script whose last `time_outs` probes exceeded the time limit.
    pub(in crate::catalog::scan) async fn ask(&self, script: Unasked, time_outs: u8) -> Looked {
        let candidate = script.candidate.clone();
        // A panic on the output of one script must not affect the others.
        let asked = AssertUnwindSafe(self.heard(script, time_outs)).catch_unwind();
        asked.await.unwrap_or_else(|_| {
            let fault = Diagnostic::help_not_started("reading what it says failed");
            self.faulty(candidate, HelpText::default(), fault)
        })
    }

    async fn heard(&self, script: Unasked, time_outs: u8) -> Looked {
        let Unasked {
            candidate,
            shebang,
            launch,
            is_ours,
        } = script;
        let policy = (self.policy).probe_policy(&candidate.path, candidate.directory(), None);
        let probed = probe::probe(&self.executor, &candidate, &launch, &policy).await;
        self.gaps.report_probe(&probed.missing);
        let path = candidate.path.clone();
        let remedy = probed.remedy.map(|key| probe::help_with(key, &path));
        let fault = match probed.answer {
            Ok(help) => return self.answered(candidate, help, shebang, launch, is_ours, remedy),
            Err(fault) => fault,
        };
        let mut diagnostic = fault.diagnostic();
        let (is_passing, is_time_out) = (fault.is_passing(), fault.is_time_out());
        let help = fault.help();
        if !is_ours && !is_passing && !resembles_answer(&help) {
            let reason = no_tool(&diagnostic.message, remedy.as_deref());
            return self.refused(candidate, shebang, reason);
        }
        diagnostic.help = remedy.or(diagnostic.help);
        let time_outs = if is_time_out { time_outs + 1 } else { 0 };
        let refusal = match is_time_out {
            true => Refusal::TimeOut(diagnostic.clone(), time_outs),
            false => Refusal::Fault(diagnostic.clone()),
        };
        let conditions = self.conditions(&candidate, shebang.as_deref());
        let answer = Answer {
            help: HelpText::default(),
            shebang,
            refusal: Some(refusal),
        };
        Looked {
            answer: (!is_passing).then_some((answer, conditions)),
            is_passing: is_passing || (1..PATIENCE).contains(&time_outs),
            time_outs,
            ..self.faulty(candidate, help, diagnostic)
        }
    }

    /// Examines the output of a script whose `--help` succeeded.
    fn answered(
        &self,
        candidate: Candidate,
        help: HelpText,
        shebang: Option<String>,
        launch: Launch,
        is_ours: bool,
        remedy: Option<String>,
    ) -> Looked {
        let parsed = parse(help.output());
        if parsed.spec.is_none() && !is_ours && !resembles_answer(&help) {
            let reason = no_tool("its `--help` describes no tool", remedy.as_deref());
            return self.refused(candidate, shebang, reason);
        }
        let answer = Answer {
            help,
            shebang,
            refusal: parsed.spec.is_none().then_some(Refusal::Text),
        };
        let mut looked = self.answer(candidate, answer, launch);
        if let (Some(remedy), [script]) = (remedy, &mut looked.scripts[..])
            && script.spec.is_none()
            && let Some(fault) = Arc::make_mut(script).diagnostics.first_mut()
        {
            fault.help = Some(remedy);
        }
        looked
    }

    /// Passes over a file whose output describes no tool.
    fn refused(&self, candidate: Candidate, shebang: Option<String>, reason: String) -> Looked {
        let conditions = self.conditions(&candidate, shebang.as_deref());
        let answer = Answer {
            help: HelpText::default(),
            shebang,
            refusal: Some(Refusal::NoTool(reason.clone())),
        };
        Looked {
            answer: Some((answer, conditions)),
            ..Looked::passed(candidate, Because::NoTool, reason)
        }
    }
}

/// Returns why a file is no tool, with advice in case it is meant to be one.
fn no_tool(what: &str, remedy: Option<&str>) -> String {
    let remedy = remedy
        .map(|remedy| format!("; {remedy}"))
        .unwrap_or_default();
    format!("it is no tool of mcpd's: {what}, and nothing in it speaks of mcpd{remedy}")
}

/// Returns whether the output was meant to be a description, however faulty.
fn resembles_answer(help: &HelpText) -> bool {
    const FIELDS: [&str; 6] = [
        "description",
        "value_type",
        "title",
        "kind",
        "required",
        "usage",
    ];
    [&help.stdout, &help.stderr].into_iter().any(|text| {
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        text.starts_with('{') && FIELDS.iter().any(|field| text.contains(field))
    })
}
