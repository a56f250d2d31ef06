//! Rules in `[[tool]]` of a front about where its runs go.

use mcpd_cluster::{Placement, RerunPolicy};
use mcpd_scriptspec::ScriptPath;
use mcpd_server::policy::CallPattern;

use super::{name, pattern};
use crate::file::File;
use crate::tables::{Rerun, ToolTable};

/// Where the runs of matching scripts go.
#[derive(Debug)]
pub(super) struct PlacementRule {
    pattern: CallPattern,
    on: Option<Vec<String>>,
    rerun: Option<Rerun>,
    home: Option<bool>,
}

/// Returns the rules in `[[tool]]` about places.
pub(super) fn placement_rules(file: &File) -> anyhow::Result<Vec<PlacementRule>> {
    let has_place =
        |table: &&ToolTable| table.on.is_some() || table.rerun.is_some() || table.home.is_some();
    let tables = file.tables.tool.iter().filter(has_place);
    let rule = |table: &ToolTable| {
        for one in table.on.iter().flatten() {
            name(file, "on", one)?;
        }
        let on = table.on.as_ref();
        Ok(PlacementRule {
            pattern: pattern(file, "match", &table.pattern)?,
            on: on.map(|labels| labels.iter().map(|one| one.get_ref().clone()).collect()),
            rerun: table.rerun,
            home: table.home,
        })
    };
    tables.map(rule).collect()
}

/// Returns the place of a script: of several rules about one thing the last one holds.
pub(super) fn place(rules: &[PlacementRule], path: &str) -> Placement {
    let mut placement = Placement::default();
    let Ok(path) = path.parse::<ScriptPath>() else {
        return placement;
    };
    for rule in rules.iter().filter(|rule| rule.pattern.matches_tool(&path)) {
        if let Some(on) = &rule.on {
            placement.labels.clone_from(on);
        }
        if let Some(home) = rule.home {
            placement.home = home;
        }
        match rule.rerun {
            Some(Rerun::Never) => placement.rerun = RerunPolicy::Never,
            Some(Rerun::ReadOnly) => placement.rerun = RerunPolicy::ReadOnly,
            Some(Rerun::Idempotent) => placement.rerun = RerunPolicy::Idempotent,
            None => {}
        }
    }
    placement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_rule_about_a_thing_places_a_script() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcpd.toml");
        let text = "[[tool]]\nmatch = \"**\"\non = [\"eu\"]\nhome = true\n\
             [[tool]]\nmatch = \"render/**\"\non = [\"gpu\", \"eu\"]\nrerun = \"idempotent\"\n";
        std::fs::write(&path, text).unwrap();
        let file = File::read(&path).unwrap();
        let rules = placement_rules(&file).unwrap();
        let rendered = place(&rules, "render/scene");
        assert_eq!(rendered.labels, ["gpu", "eu"]);
        assert!(rendered.home);
        assert_eq!(rendered.rerun, RerunPolicy::Idempotent);
        let other = place(&rules, "greet");
        assert_eq!(
            (other.labels, other.rerun),
            (vec!["eu".to_owned()], RerunPolicy::ReadOnly)
        );
    }
}
