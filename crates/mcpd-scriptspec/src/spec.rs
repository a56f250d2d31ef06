//! What a script says of itself, checked: only valid specs can be made, and only by this crate.

use serde_json::value::RawValue;

use crate::decimal::{Decimal, Parts};

/// What a script says of itself.
///
/// [`parse`](crate::parse) makes it; [`input_schema`](Self::input_schema) and [`invocation`](Self::invocation) use it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScriptSpec {
    /// Name for people; without it the name of the file serves.
    pub title: Option<String>,
    /// What the script does, for models.
    pub description: Option<String>,
    /// The script's own version, in whatever form.
    pub version: Option<String>,
    /// Whether the script answers `--state`.
    pub state: bool,
    /// The options in the order they were declared.
    pub options: Vec<ScriptOption>,
}

/// One declared input of a script.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScriptOption {
    /// Never empty, and without `=` and control characters.
    pub name: String,
    /// What the option means, for models.
    pub description: Option<String>,
    /// Whether every call must give it.
    pub required: bool,
    /// What a value must be.
    pub value_type: ValueType,
    /// The value of an optional option that a call leaves out: valid for `value_type`, exactly as declared.
    pub default_value: Option<Box<RawValue>>,
}

/// What a value must be.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ValueType {
    /// Text, with bounds on the number of code points.
    #[non_exhaustive]
    String {
        /// Code points.
        size: Bounds,
    },
    /// A whole number of any size.
    #[non_exhaustive]
    Integer {
        /// The value itself.
        size: Bounds,
    },
    /// Any number.
    #[non_exhaustive]
    Float {
        /// The value itself.
        size: Bounds,
    },
    /// `true` or `false`.
    Boolean,
    /// Any JSON value.
    #[non_exhaustive]
    Any {
        /// Code points of a string, or the value of a number; checked but not published.
        size: Bounds,
    },
    /// One of a list.
    #[non_exhaustive]
    Enum {
        /// At least one, and all different.
        values: Vec<String>,
    },
}

/// The smallest and the largest size allowed, both inclusive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Not above `max`.
    pub min: Option<Decimal>,
    /// Not below `min`.
    pub max: Option<Decimal>,
}

impl Bounds {
    pub(crate) fn contain(&self, number: &Parts<'_>) -> bool {
        let above = self
            .min
            .as_ref()
            .is_none_or(|min| min.parts().cmp(number).is_le());
        let below = self
            .max
            .as_ref()
            .is_none_or(|max| max.parts().cmp(number).is_ge());
        above && below
    }

    pub(crate) fn are_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }
}
