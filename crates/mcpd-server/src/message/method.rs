//! Methods that the server knows, on either wire.

/// Defines the methods with their names.
macro_rules! known_methods {
    ($($method:ident = $name:literal,)*) => {
        /// Method of the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum KnownMethod {
            $($method,)*
        }

        impl KnownMethod {
            /// Returns the method called `name`.
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$method),)*
                    _ => None,
                }
            }

            /// Name in messages.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$method => $name,)*
                }
            }
        }
    };
}

known_methods! {
    CallTool = "tools/call",
    CancelTask = "tasks/cancel",
    Complete = "completion/complete",
    Discover = "server/discover",
    GetPrompt = "prompts/get",
    GetSkill = "skills/get",
    GetTask = "tasks/get",
    Initialize = "initialize",
    ListPrompts = "prompts/list",
    ListResources = "resources/list",
    ListSkills = "skills/list",
    ListTemplates = "resources/templates/list",
    ListTools = "tools/list",
    ListenToChanges = "subscriptions/listen",
    Ping = "ping",
    ReadResource = "resources/read",
    SetLevel = "logging/setLevel",
    SubscribeToResource = "resources/subscribe",
    UnsubscribeFromResource = "resources/unsubscribe",
    UpdateTask = "tasks/update",
}

impl KnownMethod {
    /// Returns whether a script may run for it: such requests are recorded, and count against the
    /// rate limit of the caller.
    pub(crate) fn may_run_script(self) -> bool {
        matches!(self, Self::CallTool | Self::GetPrompt | Self::ReadResource)
    }

    /// Returns whether it needs the scanned catalog. Built-in items are known at once; the others
    /// wait for the first scan of the roots.
    pub(crate) fn needs_catalog(self) -> bool {
        match self {
            Self::CallTool
            | Self::Complete
            | Self::GetPrompt
            | Self::GetSkill
            | Self::ListPrompts
            | Self::ListResources
            | Self::ListSkills
            | Self::ListTemplates
            | Self::ListTools
            | Self::ReadResource
            | Self::SubscribeToResource
            | Self::UnsubscribeFromResource => true,
            Self::CancelTask
            | Self::Discover
            | Self::GetTask
            | Self::Initialize
            | Self::ListenToChanges
            | Self::Ping
            | Self::SetLevel
            | Self::UpdateTask => false,
        }
    }
}
