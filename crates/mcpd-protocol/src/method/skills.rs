//! Skills: instructions for models with their files, served as resources. An extension, SEP-2640.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::pagination::PaginatedRequestParams;
use super::request;
use crate::JsonObject;
use crate::meta::ResultMeta;
use crate::stamp::{CacheScope, ResultType, stamped};

/// Id of the extension, which the server declares.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

request! {
    /// `skills/list`.
    ListSkillsRequest, "skills/list", PaginatedRequestParams => ListSkillsResult
}

request! {
    /// `skills/get`.
    GetSkillRequest, "skills/get", GetSkillRequestParams => GetSkillResult
}

/// A skill and all of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// URI of its `SKILL.md`.
    pub uri: String,
    /// YAML at the beginning of its `SKILL.md`, as JSON.
    pub frontmatter: JsonObject,
    /// Its files, `SKILL.md` included.
    pub resources: Vec<SkillResource>,
}

/// File of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// URI, for `resources/read`.
    pub uri: String,
    /// `sha256:` and the hash of its bytes.
    pub digest: String,
    /// Length in bytes.
    pub size: u64,
}

/// Page of skills.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListSkillsResult {
    /// Entries in an order that is stable across calls.
    pub skills: Vec<Skill>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Cache lifetime in milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Clients that may share a cached result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Parameters of `skills/get`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetSkillRequestParams {
    /// URI of the `SKILL.md`.
    pub uri: String,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetSkillResult {
    /// The skill.
    pub skill: Skill,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Cache lifetime in milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Clients that may share a cached result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(cacheable ListSkillsResult, GetSkillResult);

impl Skill {
    /// Makes an entry.
    #[must_use]
    pub fn new(uri: String, frontmatter: JsonObject, resources: Vec<SkillResource>) -> Self {
        Self {
            uri,
            frontmatter,
            resources,
        }
    }
}

impl SkillResource {
    /// Makes the entry of a file with this SHA-256, in hexadecimal digits.
    #[must_use]
    pub fn new(uri: String, sha256: &str, size: u64) -> Self {
        Self {
            uri,
            digest: format!("sha256:{sha256}"),
            size,
        }
    }
}

impl ListSkillsResult {
    /// Makes a page.
    #[must_use]
    pub fn new(skills: Vec<Skill>) -> Self {
        Self {
            skills,
            ..Self::default()
        }
    }
}

impl GetSkillResult {
    /// Makes a result.
    #[must_use]
    pub fn new(skill: Skill) -> Self {
        Self {
            skill,
            result_type: None,
            ttl_ms: None,
            cache_scope: None,
            meta: ResultMeta::default(),
        }
    }
}
