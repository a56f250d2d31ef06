//! Classification of a script by the result of its probe: served, faulty, or no tool. The run with
//! `--help` is in [`probe`], its confinement in `policy::probe_settings`.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use mcpd_scriptspec::{Diagnostic, Parsed, parse};

use super::{InspectedFile, Inspector, MAX_TIME_OUTS, NeedsProbe};
use crate::catalog::pins::HeldBack;
use crate::catalog::scan::files::PassOverKind;
use crate::catalog::scan::script::ScriptDescription;
use crate::catalog::scan::{join_blocking, probe};
use crate::catalog::walk::Candidate;
use crate::database::rows::{HelpText, ProbeRefusal, ProbeResult};
use crate::script::start_command::StartCommand;

impl Inspector {
    /// Probes a script whose last `time_outs` probes exceeded the time limit.
    pub(in crate::catalog::scan) async fn probe(
        &self,
        script: NeedsProbe,
        time_outs: u8,
    ) -> InspectedFile {
        let candidate = script.candidate.clone();
        if let Some(reason) = self.refuse_probe(&script).await {
            return self.refused_file(candidate, reason, script.concerns_operator);
        }
        // A panic on the output of one script must not affect the others.
        let asked = AssertUnwindSafe(Box::pin(self.run_probe(script, time_outs))).catch_unwind();
        asked.await.unwrap_or_else(|_| {
            let fault = Diagnostic::help_not_started("internal error while reading its output");
            self.faulty_file(candidate, HelpText::default(), fault)
        })
    }

    /// Returns why a script must not be run at all.
    async fn refuse_probe(&self, script: &NeedsProbe) -> Option<HeldBack> {
        let check = Arc::clone(self.lock_check.as_ref()?);
        let (candidate, start_command) = (script.candidate.clone(), script.start_command.clone());
        let policy = self.policy.clone();
        let refuse = move || check.refuse_probe(&candidate, &start_command, &policy);
        join_blocking(tokio::task::spawn_blocking(refuse)).await
    }

    /// Returns the result for a file that was not probed because it is not approved.
    fn refused_file(
        &self,
        candidate: Candidate,
        reason: HeldBack,
        concerns_operator: bool,
    ) -> InspectedFile {
        if reason.changes.is_empty() && !concerns_operator {
            return InspectedFile {
                is_refused: true,
                ..InspectedFile::passed_over_file(
                    candidate,
                    PassOverKind::NotProbed,
                    "not in the lock file, so it is not run with `--help`",
                )
            };
        }
        let said = ScriptDescription {
            dialect: None,
            described_in: candidate.file.clone(),
            help: HelpText::default(),
            parsed: Parsed::default(),
        };
        // It is not served, so its command does not matter.
        let start_command = Ok(StartCommand::of_program(Path::new(""), None));
        let script = self.script(&candidate, candidate.path.clone(), said, start_command);
        let script = Arc::new(script.held_back(reason));
        InspectedFile {
            is_refused: true,
            ..InspectedFile::new(candidate, vec![script])
        }
    }

    async fn run_probe(&self, script: NeedsProbe, time_outs: u8) -> InspectedFile {
        let NeedsProbe {
            candidate,
            shebang,
            start_command,
            concerns_operator,
        } = script;
        let policy = self
            .policy
            .probe_policy(&candidate.path, candidate.directory());
        let probed = probe::probe(&self.executor, &candidate, &start_command, &policy).await;
        self.missing_enforcement.report_probe(&probed.missing);
        let path = candidate.path.clone();
        let remedy = probed.remedy.map(|key| probe::remedy_text(key, &path));
        let fault = match probed.answer {
            Ok(help) => {
                return self.accept_output(
                    candidate,
                    help,
                    shebang,
                    start_command,
                    concerns_operator,
                    remedy,
                );
            }
            Err(fault) => fault,
        };
        let mut diagnostic = fault.diagnostic();
        let (is_transient, is_time_out) = (fault.is_transient(), fault.is_time_out());
        let help = fault.help();
        if !concerns_operator && !is_transient && !resembles_answer(&help) {
            let reason = no_tool(&diagnostic.message, remedy.as_deref());
            return self.pass_over(candidate, shebang, reason);
        }
        diagnostic.help = remedy.or(diagnostic.help);
        let time_outs = if is_time_out { time_outs + 1 } else { 0 };
        let refusal = match is_time_out {
            true => ProbeRefusal::TimeOut(diagnostic.clone(), time_outs),
            false => ProbeRefusal::Fault(diagnostic.clone()),
        };
        let conditions = self.conditions(&candidate, shebang.as_deref());
        let answer = ProbeResult {
            help: HelpText::default(),
            shebang,
            refusal: Some(refusal),
        };
        InspectedFile {
            answer: (!is_transient).then_some((answer, conditions)),
            is_transient: is_transient || (1..MAX_TIME_OUTS).contains(&time_outs),
            time_outs,
            ..self.faulty_file(candidate, help, diagnostic)
        }
    }

    /// Examines the output of a script whose `--help` succeeded.
    fn accept_output(
        &self,
        candidate: Candidate,
        help: HelpText,
        shebang: Option<String>,
        start_command: StartCommand,
        concerns_operator: bool,
        remedy: Option<String>,
    ) -> InspectedFile {
        let parsed = parse(help.output());
        if parsed.spec.is_none() && !concerns_operator && !resembles_answer(&help) {
            let reason = no_tool("`--help` describes no tool", remedy.as_deref());
            return self.pass_over(candidate, shebang, reason);
        }
        let answer = ProbeResult {
            help,
            shebang,
            refusal: parsed.spec.is_none().then_some(ProbeRefusal::Text),
        };
        let conditions = self.conditions(&candidate, answer.shebang.as_deref());
        let mut inspected = self.file_from_probe(candidate, answer, conditions, start_command);
        if let (Some(remedy), [script]) = (remedy, &mut inspected.scripts[..])
            && script.spec.is_none()
            && let Some(fault) = Arc::make_mut(script).diagnostics.first_mut()
        {
            fault.help = Some(remedy);
        }
        inspected
    }

    /// Passes over a file whose output describes no tool.
    fn pass_over(
        &self,
        candidate: Candidate,
        shebang: Option<String>,
        reason: String,
    ) -> InspectedFile {
        let conditions = self.conditions(&candidate, shebang.as_deref());
        let answer = ProbeResult {
            help: HelpText::default(),
            shebang,
            refusal: Some(ProbeRefusal::NotATool(reason.clone())),
        };
        InspectedFile {
            answer: Some((answer, conditions)),
            ..InspectedFile::passed_over_file(candidate, PassOverKind::NotATool, reason)
        }
    }
}

/// Returns why a file is no tool, with advice in case it is meant to be one.
fn no_tool(what: &str, remedy: Option<&str>) -> String {
    let remedy = remedy
        .map(|remedy| format!("; {remedy}"))
        .unwrap_or_default();
    format!("not a tool: {what}, and the file does not mention mcpd{remedy}")
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
