//! Need of approval: whether a person must approve a call of a tool, and the call that the question
//! describes.

use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;
use serde_json::value::RawValue;

use super::{Body, Tool};
use crate::catalog::call::CallHost;
use crate::client::request::context::Context;
use crate::execution::approval::CallToApprove;
use crate::policy::approval::ApprovalRules;

/// Call that a person must approve.
pub(super) struct ApprovalNeed {
    pub(super) call: CallToApprove,
    /// Other tool that the call starts.
    pub(super) started: Option<ScriptPath>,
}

impl Tool {
    /// Returns whether a person must approve calls of the tool.
    pub(crate) fn needs_approval(&self, rules: &ApprovalRules) -> bool {
        let runs_anything = match &self.body {
            Body::Script(_) => false,
            Body::Other(body) => body.runs_anything(),
        };
        let annotations = self.definition.annotations.as_ref();
        rules.require(&self.path, annotations, runs_anything)
    }

    /// Returns the call to approve before this one runs, if there is one. A tool that starts
    /// another is asked about as that other, unless that needs no approval.
    pub(super) fn approval_need(
        &self,
        host: &CallHost,
        arguments: Option<&RawValue>,
        context: &Context,
    ) -> Option<ApprovalNeed> {
        // What the search finds is asked about itself, when it is called.
        if context.approved.as_ref() == Some(&self.path) || self.is_part_of_search() {
            return None;
        }
        let rules = host.engine.approvals.rules();
        if let Some((tool, arguments)) = self.started_call(host, arguments, context)
            && tool.needs_approval(&rules)
        {
            return Some(ApprovalNeed {
                started: Some(tool.path.clone()),
                call: tool.to_approve(Some(arguments)),
            });
        }
        self.needs_approval(&rules).then(|| ApprovalNeed {
            call: self.to_approve(arguments.map(RawValue::to_owned)),
            started: None,
        })
    }

    /// Returns the tool that a call starts, and the arguments of that.
    fn started_call(
        &self,
        host: &CallHost,
        arguments: Option<&RawValue>,
        context: &Context,
    ) -> Option<(Arc<Self>, Box<RawValue>)> {
        let Body::Other(body) = &self.body else {
            return None;
        };
        let (name, arguments) = body.started_call(arguments)?;
        let catalog = host.catalog.visible_to(&context.peer.principal);
        let tool = Arc::clone(catalog.tool(&name)?);
        let restored = tool.restore_names(&arguments);
        Some((tool, restored.unwrap_or(arguments)))
    }

    fn to_approve(&self, arguments: Option<Box<RawValue>>) -> CallToApprove {
        let annotations = self.definition.annotations.as_ref();
        let title = annotations.and_then(|annotations| annotations.title.as_ref());
        CallToApprove {
            path: self.path.clone(),
            title: self.definition.title.as_ref().or(title).cloned(),
            spec: self.script().map(|script| Arc::clone(&script.spec)),
            arguments,
        }
    }
}
