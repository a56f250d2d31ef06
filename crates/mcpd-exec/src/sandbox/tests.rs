//! Sandboxes, and their combination.

use super::*;

#[test]
fn levels_are_ordered_and_named() {
    assert!(Level::None < Level::Guarded && Level::Guarded < Level::Strict);
    for level in [Level::None, Level::Guarded, Level::Strict] {
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    let error = "paranoid".parse::<Level>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`paranoid` is not a sandbox level; use none, guarded or strict"
    );
}

#[test]
fn wish_confines_an_unconfined_sandbox() {
    let wish = Sandbox::guarded().write("/srv/data");
    assert_eq!(Sandbox::none().tighten(&wish), wish);
}

#[test]
fn wish_loosens_nothing() {
    let floor = Sandbox::strict().write("/srv").hide("/opt/key");
    assert_eq!(
        floor.clone().tighten(&Sandbox::none()),
        floor,
        "no wish changes nothing"
    );
    let wish = Sandbox::guarded()
        .write("/srv/data")
        .write("/srv/../opt")
        .write("/etc");
    let both = floor.clone().tighten(&wish);
    assert_eq!(both.level, Level::Strict);
    assert_eq!(both.write, [PathBuf::from("/srv/data")]);
    assert_eq!(both.hidden, floor.hidden);
    assert_eq!(both.network, Network::Off);
    assert_eq!(both.missing, Missing::Refuse);
}

#[test]
fn wish_leaves_the_destinations_that_both_allow() {
    let only = |texts: &[&str]| {
        Sandbox::guarded().destinations(texts.iter().map(|text| text.parse().unwrap()))
    };
    let (floor, wish) = (only(&["*.a.com:443", "b.com:80"]), only(&["x.a.com:*"]));
    assert_eq!(floor.clone().tighten(&wish), only(&["x.a.com:443"]));
    assert_eq!(wish.clone().tighten(&Sandbox::guarded()), wish);
    assert_eq!(Sandbox::guarded().tighten(&wish), wish);
    assert_eq!(Sandbox::strict().tighten(&floor).network, Network::Off);
}

#[test]
fn wider_wish_leaves_the_allowed_paths() {
    let floor = Sandbox::guarded()
        .write("/srv/data/mine")
        .write("/srv/other")
        .write("/srv/data/key")
        .write("/srv/data/../up");
    let wish = Sandbox::guarded().write("/srv/data").hide("/srv/data/key");
    let both = floor.clone().tighten(&wish);
    assert_eq!(both.write, [PathBuf::from("/srv/data/mine")]);
    let wish = Sandbox::guarded().write("/");
    let allowed = ["/srv/data/key", "/srv/data/mine", "/srv/other"];
    assert_eq!(floor.tighten(&wish).write, allowed.map(PathBuf::from));
}

#[test]
fn wish_opens_no_hidden_path() {
    let floor = Sandbox::guarded()
        .write("/home")
        .hide("/home/keys")
        .write("/home/keys/mine");
    let wish = Sandbox::guarded()
        .write("/home/keys")
        .write("/home/keys/other")
        .write("/home/keys/mine")
        .write("/home/keyring");
    let both = floor.tighten(&wish);
    let allowed = ["/home/keyring", "/home/keys/mine"];
    assert_eq!(both.write, allowed.map(PathBuf::from));
}

#[test]
fn wish_adds_hidden_paths() {
    let both = Sandbox::guarded().tighten(&Sandbox::guarded().hide("/opt/key"));
    assert!(both.hidden.contains(&PathBuf::from("/opt/key")));
    assert!(both.hidden.starts_with(&Sandbox::guarded().hidden));
}

#[test]
fn wish_reads_only_paths_readable_at_its_base() {
    let mut floor = Sandbox::guarded()
        .read("/home/a/.tool")
        .read("/home/a/.other");
    floor.homes = vec!["/home/a".into()];
    let wish = Sandbox::strict()
        .hide("/home/a/.other")
        .read("/home/a/notes")
        .read("/home/a/notes/../.mail")
        .read("/home/a/.mail");
    let both = floor.tighten(&wish);
    assert_eq!(
        both.read,
        ["/home/a/.tool", "/home/a/notes"].map(PathBuf::from)
    );
    assert_eq!(Sandbox::none().tighten(&wish).read, wish.read);
}

#[test]
#[cfg(unix)]
fn home_of_the_run_as_user_is_a_home() {
    let sandbox = Sandbox::none().run_as(RunAs::new(0, 0));
    assert!(sandbox.homes.contains(&PathBuf::from("/root")));
    assert!(sandbox.hidden.contains(&PathBuf::from("/root/.ssh")));
}

#[test]
fn backend_of_the_floor_stays() {
    let floor = Sandbox::strict().backend(Backend::Bwrap);
    for wish in [
        Sandbox::guarded(),
        Sandbox::strict().backend(Backend::Podman),
    ] {
        let both = floor.clone().tighten(&wish);
        assert_eq!((both.level, both.backend), (Level::Strict, floor.backend));
    }
    let both = Sandbox::guarded().tighten(&floor);
    assert_eq!((both.level, both.backend), (Level::Strict, floor.backend));
}
