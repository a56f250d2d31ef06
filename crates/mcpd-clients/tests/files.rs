//! Writing of files: mode, links, backups, and changes by another program.

use std::fs;

use mcpd_clients::file::{Backup, Change, FileError, backup_path, read, write};

#[test]
fn new_file_has_no_backup_and_its_directory_is_created() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/mcp.json");
    assert_eq!(read(&path).unwrap(), None);
    write(&path, None, "{}").unwrap();
    assert_eq!(read(&path).unwrap().unwrap(), "{}");
    assert!(!backup_path(&path).exists());
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left");
}

#[test]
fn backup_has_the_text_before_the_last_change_or_before_the_first() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mcp.json");
    fs::write(&path, "1").unwrap();
    write(&path, Some("1"), "2").unwrap();
    assert_eq!(fs::read_to_string(backup_path(&path)).unwrap(), "1");
    Change::new(&path, Some("2"), Some("3"))
        .set_backup(Backup::KeepOld)
        .apply()
        .unwrap();
    assert_eq!(fs::read_to_string(backup_path(&path)).unwrap(), "1");
    Change::new(&path, Some("3"), None)
        .set_backup(Backup::Skip)
        .apply()
        .unwrap();
    assert!(!path.exists());
    assert_eq!(fs::read_to_string(backup_path(&path)).unwrap(), "1");
}

#[test]
fn file_that_was_changed_in_the_meantime_is_left() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mcp.json");
    fs::write(&path, "other").unwrap();
    for before in [None, Some("mine")] {
        let error = write(&path, before, "new").unwrap_err();
        assert!(matches!(error, FileError::Changed { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    assert!(!backup_path(&path).exists());
    let error = write(&home.path().join("gone"), Some("mine"), "new").unwrap_err();
    assert!(matches!(error, FileError::Changed { .. }), "{error}");
    fs::write(&path, b"\xff").unwrap();
    assert!(matches!(
        read(&path).unwrap_err(),
        FileError::NotText { .. }
    ));
    assert!(matches!(
        read(home.path()).unwrap_err(),
        FileError::Io { .. }
    ));
}

#[cfg(unix)]
#[test]
fn mode_is_kept_and_that_of_a_new_file_depends_on_its_scope() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        home.path()
            .join(name)
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    let path = home.path().join("old");
    fs::write(&path, "1").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write(&path, Some("1"), "2").unwrap();
    assert_eq!((mode("old"), mode("old.mcpd-backup")), (0o640, 0o640));
    write(&home.path().join("user"), None, "1").unwrap();
    assert_eq!(mode("user"), 0o600);
    let project = home.path().join("project");
    Change::new(&project, None, Some("1"))
        .set_private(false)
        .apply()
        .unwrap();
    fs::write(home.path().join("plain"), "").unwrap();
    assert_eq!(mode("project"), mode("plain"));
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_followed_and_kept() {
    use std::os::unix::fs::symlink;

    let home = tempfile::tempdir().unwrap();
    let real = home.path().join("dotfiles/mcp.json");
    let link = home.path().join("mcp.json");
    fs::create_dir(home.path().join("dotfiles")).unwrap();
    symlink("dotfiles/mcp.json", &link).unwrap();
    write(&link, None, "1").unwrap();
    write(&link, Some("1"), "2").unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "2");
    assert_eq!(backup_path(&link), backup_path(&real));
    assert_eq!(fs::read_to_string(backup_path(&link)).unwrap(), "1");
    let circle = home.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert!(matches!(
        write(&circle, None, "1").unwrap_err(),
        FileError::Io { .. }
    ));
}
