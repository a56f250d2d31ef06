//! Assembly of a catalog from its findings: each script in its role, each name and URI for its
//! first claimant. A conflict is reported, never silently resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::StaticFile;
use super::names::{self, FirstClaims, OTHER_URI, RENAME};
use super::prompt::Prompt;
use super::resource::{Resource, Template};
use super::scan::{Scan, UnusableFile};
use super::served::{CatalogEntry, ServedScript};
use super::skill::Skill;
use super::{BuiltIn, Conflict, walk};
use crate::catalog::source::Offer;
use crate::catalog::tool::Tool;

/// Parts of a catalog, without conflicts among them.
pub(super) struct Assembly {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) prompts: Vec<Arc<Prompt>>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) templates: Vec<Arc<Template>>,
    pub(super) skills: Vec<Arc<Skill>>,
    /// Pages of tools, and supporting files of skills, by URI: lists leave them out.
    pub(super) unlisted: BTreeMap<String, Arc<Resource>>,
    /// Pages of scripts that are no tools.
    pub(super) idle_apps: Vec<UnusableFile>,
    pub(super) conflicts: Vec<Conflict>,
    paths: FirstClaims,
    /// Apart from `paths`, because a source may have a tool and a prompt of one name.
    prompt_paths: FirstClaims,
    uris: FirstClaims,
}

impl Assembly {
    /// Assembles built-in entries first, then the scripts of the roots in their order, then the
    /// offers of sources. URIs that mcpd makes take precedence over those that scripts choose.
    pub(super) fn new(built_in: &BuiltIn, scan: &Scan, offers: &[Arc<Offer>]) -> Self {
        let mut assembly = Self {
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            skills: Vec::new(),
            unlisted: BTreeMap::new(),
            idle_apps: Vec::new(),
            conflicts: Vec::new(),
            paths: FirstClaims::new("name", RENAME),
            prompt_paths: FirstClaims::new("name", RENAME),
            uris: FirstClaims::new("URI", OTHER_URI),
        };
        for tool in &built_in.tools {
            assembly.add_tool(tool);
        }
        for resource in &built_in.resources {
            assembly.add_resource(Arc::clone(resource));
        }
        let scripts = assembly.claim_paths(scan);
        for served in &scripts {
            if served.script.spec.state {
                assembly.add_resource(Arc::new(Resource::state(&served.script)));
            }
        }
        assembly.add_skills(scan);
        let is_listed = |file: &&Arc<StaticFile>| file.app_of().is_none() && !file.is_of_skill();
        for file in scan.files.iter().filter(is_listed) {
            assembly.add_resource(Arc::new(Resource::file(Arc::clone(file))));
        }
        let apps = scan.files.iter().filter(|file| file.app_of().is_some());
        let apps = apps.filter_map(|app| Some((walk::subject_of_app(app.file())?, app)));
        let apps: BTreeMap<_, _> = apps.collect();
        for served in scripts {
            let script = &served.script;
            let app = apps.get(&script.file).copied();
            // A file of several tools has no app: a result names its tool only to people.
            let app = app.filter(|app| app.app_of() == Some(&script.path));
            assembly.add_script(served, app);
        }
        for offer in offers {
            assembly.add_offer(offer);
        }
        assembly.tools = names::assign(assembly.tools, &mut assembly.conflicts);
        assembly.prompts = names::assign(assembly.prompts, &mut assembly.conflicts);
        assembly
    }

    /// Returns the scripts that can be served, in any role: a path means one script. A faulty
    /// script keeps its path as well, or callers would reach another program while it is edited.
    fn claim_paths<'a>(&mut self, scan: &'a Scan) -> Vec<&'a ServedScript> {
        let mut scripts = Vec::new();
        for found in &scan.scripts {
            let claim = self.paths.claim(found.path.as_str(), &found.path, found);
            match (&found.served, claim) {
                (Some(served), Ok(())) => scripts.push(served),
                (Some(_), Err(conflict)) => self.conflicts.push(conflict),
                // Its faults are reported already.
                (None, _) => {}
            }
        }
        scripts
    }

    /// Adds the skills all of whose files can be served.
    fn add_skills(&mut self, scan: &Scan) {
        let files = scan.files.iter().filter(|file| file.is_of_skill());
        let files: BTreeMap<_, _> = files.map(|file| (file.uri(), file)).collect();
        for skill in &scan.skills {
            let parts = skill.definition().resources.iter();
            let parts = parts.map(|part| files.get(&part.uri).copied());
            let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
                continue;
            };
            let head = parts.iter().find(|part| part.path() == skill.path());
            let claim = head.map(|head| Arc::new(Resource::skill(Arc::clone(head), skill)));
            let Some(head) = claim else { continue };
            let before = self.resources.len();
            self.add_resource(head);
            // Another root has a skill of this path.
            if self.resources.len() == before {
                continue;
            }
            for part in parts.into_iter().filter(|part| part.path() != skill.path()) {
                let resource = Arc::new(Resource::file(Arc::clone(part)));
                self.unlisted.insert(part.uri(), resource);
            }
            self.skills.push(Arc::clone(skill));
        }
    }

    fn add_tool(&mut self, tool: &Arc<Tool>) {
        match self.paths.claim(tool.path().as_str(), tool.path(), tool) {
            Ok(()) => self.tools.push(Arc::clone(tool)),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }

    fn add_prompt(&mut self, prompt: &Arc<Prompt>) {
        let path = prompt.path();
        match self.prompt_paths.claim(path.as_str(), path, prompt) {
            Ok(()) => self.prompts.push(Arc::clone(prompt)),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }

    fn add_offer(&mut self, offer: &Offer) {
        for tool in offer.tools() {
            self.add_tool(tool);
        }
        for prompt in offer.prompts() {
            self.add_prompt(prompt);
        }
        for resource in offer.resources() {
            self.add_resource(Arc::clone(resource));
        }
        for template in offer.templates() {
            self.add_template(Arc::clone(template));
        }
    }

    fn add_script(&mut self, served: &ServedScript, app: Option<&Arc<StaticFile>>) {
        match (&served.entry, app) {
            (CatalogEntry::Tool(tool), Some(app)) => {
                let (uri, page) = (app.uri(), Resource::app(Arc::clone(app), tool));
                self.tools.push(Arc::new(tool.with_app(uri.clone())));
                self.unlisted.insert(uri, Arc::new(page));
                return;
            }
            (_, Some(app)) => {
                let reason = format!("`{}` is no tool, so it has no app", served.script.path);
                self.idle_apps.push(UnusableFile::new(app.file(), reason));
            }
            (_, None) => {}
        }
        match &served.entry {
            CatalogEntry::Tool(tool) => self.tools.push(Arc::clone(tool)),
            CatalogEntry::Prompt(prompt) => self.add_prompt(prompt),
            CatalogEntry::Resource(resource) => self.add_resource(Arc::clone(resource)),
            CatalogEntry::Template(template) => self.add_template(Arc::clone(template)),
        }
    }

    fn add_resource(&mut self, resource: Arc<Resource>) {
        let uri = resource.definition().uri.as_str();
        match self.uris.claim(uri, resource.path(), &resource) {
            Ok(()) => self.resources.push(resource),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }

    fn add_template(&mut self, template: Arc<Template>) {
        let uri = template.uri().as_str();
        match self.uris.claim(uri, template.path(), &template) {
            Ok(()) => self.templates.push(template),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }
}
