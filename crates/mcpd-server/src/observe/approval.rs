//! Steps of the approval of a call, as the audit log and the metrics name them.

/// Step of the approval of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalStep {
    /// The client got the question with a result, and has yet to answer.
    Asked,
    /// A person approved this call.
    Granted,
    /// A person approved the call, and others with the same arguments for a while.
    GrantedForArguments,
    /// A person approved the call, and all others of the tool for a while.
    GrantedForTool,
    /// An earlier answer counted.
    Remembered,
    /// The client cannot ask, and the operator lets such calls run.
    Unasked,
    /// A person declined.
    Declined,
    /// A person dismissed the question.
    Cancelled,
    /// There was no answer in time.
    TimedOut,
    /// The client could not ask, against its declaration.
    Failed,
    /// The client cannot ask.
    Refused,
}

impl ApprovalStep {
    /// All steps.
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: [Self; 11] = [
        Self::Asked,
        Self::Granted,
        Self::GrantedForArguments,
        Self::GrantedForTool,
        Self::Remembered,
        Self::Unasked,
        Self::Declined,
        Self::Cancelled,
        Self::TimedOut,
        Self::Failed,
        Self::Refused,
    ];

    /// Name in records and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Granted => "granted",
            Self::GrantedForArguments => "granted-for-arguments",
            Self::GrantedForTool => "granted-for-tool",
            Self::Remembered => "remembered",
            Self::Unasked => "unasked",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed-out",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }

    /// Returns whether the call does not run.
    pub(crate) fn is_refusal(self) -> bool {
        matches!(
            self,
            Self::Declined | Self::Cancelled | Self::TimedOut | Self::Failed | Self::Refused
        )
    }
}
