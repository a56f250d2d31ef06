//! Assembly of a catalog from its findings: each script in its role, each name and URI for its
//! first claimant. A conflict is reported, never silently resolved.

use std::sync::Arc;

use super::names::{self, Claims, OTHER_URI, RENAME};
use super::prompt::Prompt;
use super::resource::{Resource, Template};
use super::scan::Scan;
use super::served::{Entry, Served};
use super::{BuiltIn, Conflict};
use crate::source::Offer;
use crate::tool::Tool;

/// Parts of a catalog, without conflicts among them.
pub(super) struct Assembly {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) prompts: Vec<Arc<Prompt>>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) templates: Vec<Arc<Template>>,
    pub(super) conflicts: Vec<Conflict>,
    paths: Claims,
    /// Apart from `paths`, because a source may have a tool and a prompt of one name.
    prompt_paths: Claims,
    uris: Claims,
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
            paths: Claims::of("name", RENAME),
            prompt_paths: Claims::of("name", RENAME),
            uris: Claims::of("URI", OTHER_URI),
        };
        for tool in &built_in.tools {
            assembly.tool(tool);
        }
        for resource in &built_in.resources {
            assembly.resource(Arc::clone(resource));
        }
        let scripts = assembly.scripts(scan);
        for served in &scripts {
            if served.script.spec.state {
                assembly.resource(Arc::new(Resource::state(&served.script)));
            }
        }
        for file in &scan.files {
            assembly.resource(Arc::new(Resource::file(Arc::clone(file))));
        }
        for served in scripts {
            assembly.script(served);
        }
        for offer in offers {
            assembly.offer(offer);
        }
        assembly.tools = names::assign(assembly.tools, &mut assembly.conflicts);
        assembly.prompts = names::assign(assembly.prompts, &mut assembly.conflicts);
        assembly
    }

    /// Returns the scripts that can be served, in any role: a path means one script. A faulty
    /// script keeps its path as well, or callers would reach another program while it is edited.
    fn scripts<'a>(&mut self, scan: &'a Scan) -> Vec<&'a Served> {
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

    fn tool(&mut self, tool: &Arc<Tool>) {
        match self.paths.claim(tool.path().as_str(), tool.path(), tool) {
            Ok(()) => self.tools.push(Arc::clone(tool)),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }

    fn prompt(&mut self, prompt: &Arc<Prompt>) {
        let path = prompt.path();
        match self.prompt_paths.claim(path.as_str(), path, prompt) {
            Ok(()) => self.prompts.push(Arc::clone(prompt)),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }

    fn offer(&mut self, offer: &Offer) {
        for tool in offer.tools() {
            self.tool(tool);
        }
        for prompt in offer.prompts() {
            self.prompt(prompt);
        }
        for resource in offer.resources() {
            self.resource(Arc::clone(resource));
        }
        for template in offer.templates() {
            self.template(Arc::clone(template));
        }
    }

    fn script(&mut self, served: &Served) {
        match &served.entry {
            Entry::Tool(tool) => self.tools.push(Arc::clone(tool)),
            Entry::Prompt(prompt) => self.prompt(prompt),
            Entry::Resource(resource) => self.resource(Arc::clone(resource)),
            Entry::Template(template) => self.template(Arc::clone(template)),
        }
    }

    fn resource(&mut self, resource: Arc<Resource>) {
        let uri = resource.definition().uri.as_str();
        match self.uris.claim(uri, resource.path(), &resource) {
            Ok(()) => self.resources.push(resource),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }

    fn template(&mut self, template: Arc<Template>) {
        let uri = template.uri().as_str();
        match self.uris.claim(uri, template.path(), &template) {
            Ok(()) => self.templates.push(template),
            Err(conflict) => self.conflicts.push(conflict),
        }
    }
}
