//! Approval: the tools that a person must approve before each call runs (human in the loop), and
//! how long an answer counts. How the person is asked is the concern of `execution::approval`.

use std::time::Duration;

use mcpd_protocol::method::ToolAnnotations;
use mcpd_scriptspec::ScriptPath;

use crate::policy::pattern::Pattern;
use crate::policy::{Policy, ToolPolicy};

/// Default time limit for an answer.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// Approval of calls by a person; by default no call needs it. The policy of a tool
/// [overrides](super::ToolPolicy::ask_first) it.
///
/// ```
/// use std::time::Duration;
///
/// use mcpd_server::Policy;
/// use mcpd_server::policy::{Approval, AskFor, Remember};
///
/// let mut approval = Approval::default();
/// approval.ask = AskFor::Destructive;
/// approval.remember = Remember::For(Duration::from_secs(900));
/// let policy = Policy::default().approval(approval);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approval {
    /// Tools that need it.
    pub ask: AskFor,
    /// Reaction if the client cannot ask a person.
    pub without: WithoutPerson,
    /// Longest time for which an answer may count.
    pub remember: Remember,
    /// Time limit for an answer.
    pub timeout: Duration,
}

impl Approval {
    /// Key of the question among the input requests of a result.
    pub const QUESTION_KEY: &str = "mcpd/approval";
    /// Maximum of the time limit for an answer: a client of the stateless wire carries the
    /// question for an hour.
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            ask: AskFor::default(),
            without: WithoutPerson::default(),
            remember: Remember::default(),
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// Tools whose calls need approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskFor {
    /// None.
    #[default]
    Never,
    /// Those annotated as destructive, and `run_command`.
    Destructive,
    /// All but those annotated as read-only.
    UnlessReadOnly,
    /// All.
    Always,
}

/// Reaction to a call that needs approval, of a client that cannot ask a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithoutPerson {
    /// The call is refused.
    #[default]
    Refuse,
    /// The call runs.
    Allow,
}

/// Longest time for which the person may let an answer count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remember {
    /// One call.
    #[default]
    Never,
    /// The session of the client; one call if it has no session.
    Session,
    /// This time, for all clients with the same principal.
    For(Duration),
}

impl Policy {
    /// Sets the approval of calls by a person.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Removes the need of approval for all calls, whatever tools say: for callers that are the
    /// operator.
    #[must_use]
    pub fn without_approval(mut self) -> Self {
        for tool in &mut self.tools {
            tool.settings.asks_first = None;
        }
        self.approval(Approval::default())
    }
}

impl ToolPolicy {
    /// Sets whether a person must [approve](Approval) calls of the tools.
    #[must_use]
    pub fn ask_first(mut self, ask: bool) -> Self {
        self.settings.asks_first = Some(ask);
        self
    }
}

/// Approval settings with the rules for some tools, evaluated at each call.
#[derive(Debug, Default)]
pub(crate) struct ApprovalRules {
    pub(crate) settings: Approval,
    rules: Vec<(Pattern, bool)>,
}

impl ApprovalRules {
    /// Collects the rules of `policy`.
    pub(crate) fn new(policy: &Policy) -> Self {
        let rules = policy.tools.iter();
        let rules =
            rules.filter_map(|tool| Some((tool.pattern.clone(), tool.settings.asks_first?)));
        Self {
            settings: policy.approval.clone(),
            rules: rules.collect(),
        }
    }

    /// Returns whether calls of the tool at `path` need approval. `runs_anything` is set for a
    /// tool without annotations that may destroy something all the same.
    pub(crate) fn require(
        &self,
        path: &ScriptPath,
        annotations: Option<&ToolAnnotations>,
        runs_anything: bool,
    ) -> bool {
        let mut rules = self.rules.iter().rev();
        if let Some((_, asks)) = rules.find(|(pattern, _)| pattern.is_match(path.as_str())) {
            return *asks;
        }
        let hint = |of: fn(&ToolAnnotations) -> Option<bool>| annotations.and_then(of);
        match self.settings.ask {
            AskFor::Never => false,
            AskFor::Destructive => {
                runs_anything || hint(|hints| hints.destructive_hint) == Some(true)
            }
            AskFor::UnlessReadOnly => hint(|hints| hints.read_only_hint) != Some(true),
            AskFor::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: bool, destructive: bool) -> ToolAnnotations {
        let mut hints = ToolAnnotations::default();
        hints.read_only_hint = Some(read_only);
        hints.destructive_hint = Some(destructive);
        hints
    }

    /// Compares the need of approval for a tool without annotations, a read-only one, a
    /// destructive one, and `run_command`.
    #[track_caller]
    fn check(ask: AskFor, expected: [bool; 4]) {
        let approval = Approval {
            ask,
            ..Approval::default()
        };
        let rules = ApprovalRules::new(&Policy::default().approval(approval));
        let path = "files/delete".parse().unwrap();
        let found = [
            rules.require(&path, None, false),
            rules.require(&path, Some(&hints(true, false)), false),
            rules.require(&path, Some(&hints(false, true)), false),
            rules.require(&path, None, true),
        ];
        assert_eq!(found, expected, "{ask:?}");
    }

    #[test]
    fn approval_depends_on_annotations() {
        check(AskFor::Never, [false; 4]);
        check(AskFor::Destructive, [false, false, true, true]);
        check(AskFor::UnlessReadOnly, [true, false, true, true]);
        check(AskFor::Always, [true; 4]);
    }

    #[test]
    fn last_tool_policy_with_approval_wins() {
        let tool = |pattern: &str| ToolPolicy::new(pattern).unwrap();
        let approval = Approval {
            ask: AskFor::Destructive,
            ..Approval::default()
        };
        let policy = Policy::default()
            .approval(approval)
            .tool(tool("files/*").ask_first(true))
            .tool(tool("files/delete").ask_first(false))
            .tool(tool("**").timeout(Duration::from_secs(1)));
        let rules = ApprovalRules::new(&policy);
        let destructive = hints(false, true);
        for (path, asks) in [
            ("files/list", true),
            ("files/delete", false),
            ("other", true),
        ] {
            let path = path.parse().unwrap();
            assert_eq!(rules.require(&path, Some(&destructive), false), asks);
        }
        assert!(rules.require(&"files/list".parse().unwrap(), None, false));
    }
}
