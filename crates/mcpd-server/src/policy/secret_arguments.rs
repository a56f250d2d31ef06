//! Secret arguments of a script, as its spec declares them.

use mcpd_scriptspec::ScriptSpec;

/// Returns whether the argument `name` is a secret. In a script that declares secrets, an
/// undeclared argument may be one of them under a misspelt name.
pub(crate) fn is_secret(name: &str, spec: &ScriptSpec) -> bool {
    match spec.options.iter().find(|option| option.name == name) {
        Some(option) => option.secret,
        None => has_secrets(spec),
    }
}

/// Returns whether any argument of the script is a secret.
pub(crate) fn has_secrets(spec: &ScriptSpec) -> bool {
    spec.options.iter().any(|option| option.secret)
}
