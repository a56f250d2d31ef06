//! User and group of scripts, by name or number: `www-data`, `www-data:adm`, `1000:1000`.

use mcpd_exec::RunAs;

/// Looks up the user and group.
///
/// # Errors
///
/// The user or group does not exist, or this system cannot change users;
/// the message is a fragment.
#[cfg(unix)]
pub(crate) fn parse(text: &str) -> Result<RunAs, String> {
    use nix::unistd::{Gid, Group, Uid, User};

    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    let failed = |error| format!("failed to look up `{text}`: {error}");
    let number: Option<u32> = user.parse().ok();
    let known = match number {
        Some(number) => User::from_uid(Uid::from_raw(number)),
        None => User::from_name(user),
    }
    .map_err(failed)?;
    let user_number = match (number, &known) {
        (Some(number), _) => number,
        (None, Some(known)) => known.uid.as_raw(),
        (None, None) => return Err(format!("unknown user `{user}`")),
    };
    let group_number = match group {
        None => known.map(|known| known.gid.as_raw()).ok_or_else(|| {
            format!("the user `{user}` has no known group; add one: `{user}:GROUP`")
        })?,
        Some(group) => match group.parse() {
            Ok(number) => number,
            Err(_) => Group::from_name(group)
                .map_err(failed)?
                .ok_or_else(|| format!("unknown group `{group}`"))?
                .gid
                .as_raw(),
        },
    };
    let is_somebody_else =
        Uid::effective().as_raw() != user_number || Gid::effective().as_raw() != group_number;
    if is_somebody_else && !Uid::effective().is_root() {
        return Err("only root can run scripts as another user".to_owned());
    }
    Ok(RunAs::new(user_number, group_number))
}

#[cfg(not(unix))]
pub(crate) fn parse(_: &str) -> Result<RunAs, String> {
    Err("this system cannot run scripts as another user".to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, refused: &str) {
        assert_eq!(parse(text).unwrap_err(), refused);
    }

    #[test]
    fn unknown_user_is_named() {
        check("no-such-user", "unknown user `no-such-user`");
        check("0:no-such-group", "unknown group `no-such-group`");
        check(
            "3999999999",
            "the user `3999999999` has no known group; add one: `3999999999:GROUP`",
        );
    }

    #[test]
    fn own_user_is_always_possible() {
        use nix::unistd::{Gid, Uid};
        let (user, group) = (Uid::effective().as_raw(), Gid::effective().as_raw());
        assert_eq!(
            parse(&format!("{user}:{group}")),
            Ok(RunAs::new(user, group))
        );
    }
}
