//! Tests of fixes.

use super::*;

/// Checks the text of a file after all fixes, and that there are no more.
#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    fs::write(&file, text).unwrap();
    let mut rounds = 0;
    loop {
        let text = fs::read(&file).unwrap();
        let dialect = Dialect::of(name, &text).expect("it describes itself");
        let tools = dialect.read(name, &text);
        let faults = tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
        let found: Vec<_> = faults
            .map(|fault| Finding::in_file(&file, &text, fault))
            .collect();
        let planned = plan(&found).unwrap();
        let [fixed] = &planned[..] else { break };
        fixed.write().unwrap();
        rounds += 1;
        assert!(rounds < 10, "each fix is the last of its fault");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn fixes_change_their_words_and_nothing_else() {
    check(
        "x.mcpd.toml",
        "# Notes\r\ntitel   = 'A'  # a remark\r\ndescripton = \"Does\"\r\noutput = 'JSON'\r\n",
        "# Notes\r\ntitle   = 'A'  # a remark\r\ndescription = \"Does\"\r\noutput = 'json'\r\n",
    );
    check(
        "x.mcpd.json",
        "{\"description\": \"Does\", \"title\": null, \"version\": null}",
        "{\"description\": \"Does\"}",
    );
}

#[test]
fn fix_with_a_new_error_is_not_made() {
    // The field would be there twice, or have the wrong type.
    for text in [
        "title = 'A'\ntitel = 'B'\ndescription = 'Does'\n",
        "description = 'Does'\ntitel = 3\n",
    ] {
        check("x.mcpd.toml", text, text);
    }
}

#[test]
fn carriage_returns_go_from_all_lines_or_from_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x");
    for (text, expected) in [
        ("#!/bin/sh\r\necho\r\n", Some("#!/bin/sh\necho\n")),
        (
            "#!/bin/sh\r\necho\r\nexit\n",
            Some("#!/bin/sh\necho\r\nexit\n"),
        ),
        ("#!/bin/sh\necho\r\n", None),
        ("echo\r\n", None),
    ] {
        fs::write(&file, text).unwrap();
        let fixed = line_ends(&file).map(|fix| match fix {
            Fix::Edits(edits) => apply_edits(text, &edits).unwrap(),
            Fix::Permission => panic!("edits"),
        });
        assert_eq!(fixed.as_deref(), expected);
    }
}

#[test]
fn file_that_has_changed_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.mcpd.toml");
    fs::write(&file, "a").unwrap();
    let mut fixed = FixedFile::read(&file, file.clone()).unwrap();
    fixed.after = "b".to_owned();
    fs::write(&file, "c").unwrap();
    let error = fixed.write().unwrap_err().to_string();
    assert!(
        error.ends_with("the file has changed meanwhile; check it again"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "c");
}

#[cfg(unix)]
#[test]
fn script_is_fixed_as_a_program_and_a_library_is_not() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x");
    let roots = [directory.path().to_owned()];
    for (text, expected) in [
        (
            "#!/bin/sh\n# /// mcpd\n# description = 'Does'\n# ///\n",
            true,
        ),
        ("#!/bin/sh\ncase $1 in --help) echo '{}';; esac\n", true),
        ("#!/bin/sh\ngreet() { echo hi; }\n", false),
        ("echo --help\n", false),
    ] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let fixed = FixedFile::of_script(&file, &roots).unwrap();
        assert_eq!(fixed.is_some(), expected, "{text}");
        // The mode is that of the time of the change.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        if let Some(fixed) = fixed {
            fixed.write().unwrap();
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700);
        }
    }
    fs::write(&file, "#!/bin/sh\ngreet() { echo hi; }\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(
        directory.path().join("x.mcpd.toml"),
        "description = 'Does'\n",
    )
    .unwrap();
    assert!(FixedFile::of_script(&file, &roots).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn script_behind_a_link_out_of_its_root_is_not_fixed() {
    use std::os::unix::fs::symlink;

    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = outside.path().join("x");
    fs::write(&target, "#!/bin/sh\r\n# --help\r\n").unwrap();
    let link = inside.path().join("x");
    symlink(&target, &link).unwrap();
    let root = |directory: &tempfile::TempDir| [directory.path().to_owned()];
    let fixed = FixedFile::of_script(&link, &root(&inside)).unwrap();
    assert!(fixed.is_none());

    // A link that leads elsewhere by now is not followed either.
    let fixed = FixedFile::of_script(&link, &root(&outside))
        .unwrap()
        .unwrap();
    fs::remove_file(&link).unwrap();
    symlink("/etc/hosts", &link).unwrap();
    let error = fixed.write().unwrap_err().to_string();
    assert!(error.contains("has changed meanwhile"), "{error}");
    let text = fs::read_to_string(&target).unwrap();
    assert!(text.contains('\r'), "{text:?}");
}

#[cfg(unix)]
#[test]
fn lone_carriage_returns_stay() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x");
    fs::write(&file, "#!/bin/sh\r\nprintf 'a\rb'\r\n").unwrap();
    let roots = [directory.path().to_owned()];
    let fixed = FixedFile::of_script(&file, &roots).unwrap().unwrap();
    assert_eq!(fixed.after, "#!/bin/sh\nprintf 'a\rb'\n");
}
