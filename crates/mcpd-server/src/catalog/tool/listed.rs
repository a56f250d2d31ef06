//! Arguments of a tool in lists: a schema in the portable form, names in portable spellings, and
//! the reverse mapping.

use mcpd_protocol as protocol;
use mcpd_scriptspec::portable::{PortableNames, portable_schema};
use mcpd_scriptspec::{Code, excerpt};
use serde_json::Value;
use serde_json::value::RawValue;

use super::raw;
use crate::script::schema::formats::remove_forbidden_defaults;

/// Maximum number of characters of a place or a name that a remark quotes.
const MAX_QUOTED: usize = 200;

/// Differences between the declared and the listed schemas of a tool.
#[derive(Debug, Clone, Default)]
pub(super) struct ListedForm {
    /// Declared schema of the arguments, if the definition has another.
    pub(super) declared: Option<Box<RawValue>>,
    renamed: Option<Renamed>,
    /// Remarks for the author, by rule.
    pub(super) remarks: Vec<(Code, String)>,
}

/// Schema with names that some model provider rejects.
#[derive(Debug, Clone)]
struct Renamed {
    names: PortableNames,
    /// With declared names.
    schema: Value,
    /// With portable names.
    portable: Box<RawValue>,
}

impl ListedForm {
    /// Converts the schemas of `definition` to the listed form.
    pub(super) fn new(definition: &mut protocol::method::Tool) -> Self {
        let mut listed = Self::default();
        if let Some((schema, portable)) = listed.normalize(&definition.input_schema) {
            listed.renamed = Renamed::new(schema);
            listed.declared =
                portable.map(|portable| std::mem::replace(&mut definition.input_schema, portable));
        }
        if let Some(declared) = &mut definition.output_schema
            && let Some((_, Some(portable))) = listed.normalize(declared)
        {
            *declared = portable;
        }
        let renamed = listed
            .renamed
            .iter()
            .flat_map(|renamed| renamed.names.iter());
        let renamed: Vec<_> = renamed.map(describe_renaming).collect();
        listed.remarks.extend(renamed);
        listed
    }

    /// Returns the portable form of a schema, and its text if that differs; `None` for an
    /// unreadable one.
    fn normalize(&mut self, declared: &RawValue) -> Option<(Value, Option<Box<RawValue>>)> {
        let mut schema: Value = serde_json::from_str(declared.get()).ok()?;
        let before = schema.clone();
        let changes = portable_schema(&mut schema).into_iter();
        let changes = changes.map(|change| (Code::UnportableSchema, change.to_string()));
        self.remarks.extend(changes);
        let forbidden = remove_forbidden_defaults(&mut schema).into_iter();
        let forbidden = forbidden.map(|place| (Code::ForbiddenDefault, of_default(&place)));
        self.remarks.extend(forbidden);
        let portable = (schema != before).then(|| raw(&schema));
        Some((schema, portable))
    }

    /// Returns the schema of the arguments with portable names, if some are not portable.
    pub(super) fn portable(&self) -> Option<&RawValue> {
        self.renamed.as_ref().map(|renamed| &*renamed.portable)
    }

    /// Returns the arguments of a call under their declared names, if some are not portable.
    pub(super) fn restore(&self, arguments: &RawValue) -> Option<Box<RawValue>> {
        let renamed = self.renamed.as_ref()?;
        Some(renamed.names.restore(&renamed.schema, arguments))
    }
}

impl Renamed {
    fn new(schema: Value) -> Option<Self> {
        let names = PortableNames::of(&schema)?;
        let mut portable = schema.clone();
        names.rename(&mut portable);
        Some(Self {
            names,
            schema,
            portable: raw(&portable),
        })
    }
}

/// Describes a default at `place` that its format forbids.
pub(crate) fn of_default(place: &str) -> String {
    let place = excerpt(place, MAX_QUOTED);
    format!("at `{place}`: the default is not listed because it does not match the `format`")
}

fn describe_renaming((name, spelling): (&str, &str)) -> (Code, String) {
    let name = excerpt(name, MAX_QUOTED);
    let message = format!("some models refuse the name `{name}`, so it is listed as `{spelling}`");
    (Code::UnportableOptionName, message)
}
