//! Skills of a root: the directories below `skills/` with a `SKILL.md`, checked against the format
//! of [Agent Skills](https://agentskills.io/specification). A faulty one is not served, and none
//! of its files.

use std::path::Path;

use mcpd_protocol::method::{Skill as Definition, SkillResource};
use mcpd_scriptspec::is_hidden;
use serde_json::Value;

use super::super::file::StaticFile;
use super::super::pins::digests::FileDigests;
use super::super::skill::Skill;
use super::super::walk::{SKILL_FILE, Walked};
use super::{UnusableFile, frontmatter};

/// Maximum number of files of a skill, and their size together in bytes: what every client loads.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
/// Maximum length of a name and of a description, in characters.
const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// Reads the skills among the files of `walked`, and returns them with the faulty ones. Blocks.
pub(super) fn read(walked: &mut Walked, digests: &FileDigests) -> (Vec<Skill>, Vec<UnusableFile>) {
    let (mut skills, mut faulty) = (Vec::new(), Vec::new());
    let heads = walked.files.iter().filter(|file| {
        file.is_of_skill()
            && file
                .file()
                .file_name()
                .is_some_and(|name| name == SKILL_FILE)
    });
    for head in heads {
        let directory = head.file().parent().unwrap_or(head.file());
        let below = |file: &&StaticFile| file.file().starts_with(directory);
        let files = walked.files.iter().filter(below).collect::<Vec<_>>();
        match read_one(head, directory, &files, digests) {
            Ok(skill) => skills.push(skill),
            Err(reason) => faulty.push(UnusableFile::new(head.file(), reason)),
        }
    }
    let is_faulty = |file: &StaticFile| {
        let heads = faulty.iter().filter_map(|head| head.file.parent());
        file.is_of_skill()
            && heads
                .into_iter()
                .any(|directory| file.file().starts_with(directory))
    };
    walked.files.retain(|file| !is_faulty(file));
    (skills, faulty)
}

fn read_one(
    head: &StaticFile,
    directory: &Path,
    files: &[&StaticFile],
    digests: &FileDigests,
) -> Result<Skill, String> {
    let bytes = head.read().map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    let frontmatter = frontmatter::read(&text)?;
    let member = |name: &str| match frontmatter.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.as_str()),
        _ => Err(format!(
            "the frontmatter has no `{name}`, or one that is no text"
        )),
    };
    let name = member("name")?;
    check_name(name, directory)?;
    let description = member("description")?;
    if description.chars().count() > MAX_DESCRIPTION_CHARS {
        return Err(format!(
            "the description is longer than {MAX_DESCRIPTION_CHARS} characters"
        ));
    }
    if let Some(hidden) = text.chars().find(|char| is_hidden(*char)) {
        let number = u32::from(hidden);
        return Err(format!("contains the hidden character U+{number:04X}"));
    }
    if files.len() > MAX_FILES {
        return Err(format!("the skill has more than {MAX_FILES} files"));
    }
    if files.iter().map(|file| file.size()).sum::<u64>() > MAX_BYTES {
        return Err(format!(
            "the files of the skill have more than {MAX_BYTES} bytes"
        ));
    }
    let resource = |file: &&StaticFile| {
        let digest = digests.digest(file.file());
        let digest = digest.map_err(|error| format!("`{}`: {error}", file.name()))?;
        Ok(SkillResource::new(file.uri(), &digest, file.size()))
    };
    let resources: Result<Vec<_>, String> = files.iter().map(resource).collect();
    let definition = Definition::new(head.uri(), frontmatter, resources?);
    Ok(Skill::new(head.path().clone(), definition))
}

/// Checks the name of a skill by the rules of its format.
fn check_name(name: &str, directory: &Path) -> Result<(), String> {
    let is_allowed = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    let is_valid = name.chars().all(is_allowed)
        && name.len() <= MAX_NAME_CHARS
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if !is_valid {
        return Err(format!(
            "the name `{name}` is not of lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS}"
        ));
    }
    let is_same = directory
        .file_name()
        .is_some_and(|directory| directory == name);
    match is_same {
        true => Ok(()),
        false => Err(format!("the name `{name}` is not that of the directory")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::super::walk::walk;
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[track_caller]
    fn check(head: &str, fault: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        write(&root, "skills/team/pdf/SKILL.md", head);
        write(
            &root,
            "skills/team/pdf/scripts/run.py",
            "#!/usr/bin/env python3\n",
        );
        let mut walked = walk(&root, None);
        assert!(walked.scripts.is_empty(), "no file of a skill is a script");
        let (skills, faulty) = read(&mut walked, &FileDigests::default());
        let faults: Vec<_> = faulty.iter().map(|file| file.reason.as_str()).collect();
        match fault {
            None => {
                assert_eq!(faults, [""; 0]);
                let skill = serde_json::to_value(skills[0].definition()).unwrap();
                assert_eq!(skill["uri"], "skill://team/pdf/SKILL.md");
                assert_eq!(skill["frontmatter"]["description"], "Reads.");
                let script = &skill["resources"][1];
                assert_eq!(script["uri"], "skill://team/pdf/scripts/run.py");
                assert_eq!(script["size"], 23);
            }
            Some(fault) => {
                assert!(skills.is_empty() && walked.files.is_empty());
                assert!(faults[0].contains(fault), "{faults:?}");
            }
        }
    }

    #[test]
    fn skill_is_read_and_checked() {
        let head = |name: &str, text: &str| format!("---\nname: {name}\n{text}---\n# PDF\n");
        check(&head("pdf", "description: Reads.\n"), None);
        check(
            &head("xls", "description: Reads.\n"),
            Some("not that of the directory"),
        );
        check(&head("Pdf", "description: Reads.\n"), Some("lower-case"));
        check(&head("pdf", ""), Some("no `description`"));
        check(&head("3", "description: a\n"), Some("no `name`"));
        check("# PDF", Some("must begin with YAML"));
        check(
            &head("pdf", "description: a\u{200b}b\n"),
            Some("hidden character"),
        );
        let long = format!("description: {}\n", "x".repeat(1025));
        check(&head("pdf", &long), Some("longer than 1024"));
    }

    #[test]
    fn directory_without_a_skill_has_scripts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        write(&root, "skills/greet", "#!/bin/sh\n");
        write(
            &root,
            "skills/greet.mcpd.toml",
            "description = \"Greets\"\n",
        );
        write(&root, "skills/SKILL.md", "---\nname: a\n---\n");
        let scripts = walk(&root, None).scripts;
        assert!(scripts.keys().any(|path| path.as_str() == "skills/greet"));
    }
}
