//! Arguments of a tool as lists show them: a schema in the portable form, names in portable spellings, and the way back.

use mcpd_protocol as protocol;
use mcpd_scriptspec::{Code, PortableNames, excerpt, portable_schema};
use serde_json::Value;
use serde_json::value::RawValue;

use super::raw;
use crate::schema::formats::remove_forbidden_defaults;

/// Characters of a place or a name that a remark repeats.
const MAX_QUOTED: usize = 200;

/// Differences between the schemas of a tool as it was declared and as it is listed.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    /// The schema of the arguments as it was declared, where the definition has another.
    pub(super) declared: Option<Box<RawValue>>,
    renamed: Option<Renamed>,
    /// Remarks for the author, by rule.
    pub(super) remarks: Vec<(Code, String)>,
}

/// A schema with names that some model provider refuses.
#[derive(Debug, Clone)]
struct Renamed {
    names: PortableNames,
    /// With the names as they were declared.
    schema: Value,
    /// With portable names.
    portable: Box<RawValue>,
}

impl Listed {
    /// Gives the schemas of `definition` the form in which they are listed.
    pub(super) fn new(definition: &mut protocol::Tool) -> Self {
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
        let renamed: Vec<_> = renamed.map(of_name).collect();
        listed.remarks.extend(renamed);
        listed
    }

    /// Returns the portable form of a schema, and its text where that is another; nothing for what can't be read.
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

    /// Returns the schema of the arguments with portable names, where any are not.
    pub(super) fn portable(&self) -> Option<&RawValue> {
        self.renamed.as_ref().map(|renamed| &*renamed.portable)
    }

    /// Returns the arguments of a call under the names that were declared, where any of these are not portable.
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

/// Describes a default at `place`, which its format forbids.
pub(crate) fn of_default(place: &str) -> String {
    let place = excerpt(place, MAX_QUOTED);
    format!("at `{place}`: the default is not listed, because it does not have its `format`")
}

fn of_name((name, spelling): (&str, &str)) -> (Code, String) {
    let name = excerpt(name, MAX_QUOTED);
    let message = format!("some models refuse the name `{name}`, so it is listed as `{spelling}`");
    (Code::UnportableOptionName, message)
}
