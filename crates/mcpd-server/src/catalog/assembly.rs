//! Assembly of a catalog from its findings: each script in its role, each name and URI for its
//! first claimant. A conflict is reported, never silently resolved.

use std::sync::Arc;

use super::names::{self, FirstClaims, OTHER_URI, RENAME};
use super::prompt::Prompt;
use super::resource::{Resource, Template};
use super::scan::Scan;
use super::served::{CatalogEntry, ServedScript};
use super::{BuiltIn, Conflict};
use crate::catalog::source::Offer;
use crate::catalog::tool::Tool;

/// Parts of a catalog, without conflicts among them.
pub(super) struct Assembly {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) prompts: Vec<Arc<Prompt>>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) templates: Vec<Arc<Template>>,
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
        for file in &scan.files {
            assembly.add_resource(Arc::new(Resource::file(Arc::clone(file))));
        }
        for served in scripts {
            assembly.add_script(served);
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

    fn add_script(&mut self, served: &ServedScript) {
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
