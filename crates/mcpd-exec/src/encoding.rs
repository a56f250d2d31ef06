//! Serialized forms of values that serde does not know: an exit status as the number of the system,
//! bytes as base64, levels and paths as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::sandbox::Level;

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

/// Bytes as base64, which is a third longer than they are; a list of numbers would be four times as
/// long.
pub(crate) mod base64_bytes {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use bytes::Bytes;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(de::Error::custom)?;
        Ok(bytes.into())
    }
}

/// Exit status as the number that the system gives it.
pub(crate) mod exit_status {
    use std::process::ExitStatus;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[cfg(unix)]
    type Raw = i32;
    #[cfg(windows)]
    type Raw = u32;

    pub(crate) fn serialize<S: Serializer>(
        status: &Option<ExitStatus>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        status.map(to_raw).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ExitStatus>, D::Error> {
        let raw = Option::<Raw>::deserialize(deserializer)?;
        Ok(raw.map(from_raw))
    }

    #[cfg(unix)]
    fn to_raw(status: ExitStatus) -> Raw {
        std::os::unix::process::ExitStatusExt::into_raw(status)
    }

    #[cfg(windows)]
    fn to_raw(status: ExitStatus) -> Raw {
        status.code().unwrap_or_default().cast_unsigned()
    }

    #[cfg(unix)]
    fn from_raw(raw: Raw) -> ExitStatus {
        std::os::unix::process::ExitStatusExt::from_raw(raw)
    }

    #[cfg(windows)]
    fn from_raw(raw: Raw) -> ExitStatus {
        std::os::windows::process::ExitStatusExt::from_raw(raw)
    }
}

/// Paths as text. Bytes that are not UTF-8 become U+FFFD.
pub(crate) mod lossy_paths {
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ptr_arg, reason = "serde passes the field")]
    pub(crate) fn serialize<S: Serializer>(
        paths: &Vec<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        Vec::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::{Command, Config, Executor, Limits, Outcome};

    #[track_caller]
    fn check(outcome: &Outcome) {
        let text = serde_json::to_string(outcome).unwrap();
        assert_eq!(&serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn outcome_is_the_same_after_serialization() {
        let executor = Executor::new(Config::default()).unwrap();
        let mut limits = Limits {
            capture_head: 8,
            capture_tail: 8,
            ..Limits::default()
        };
        for program in [
            "printf '\\377\\0text'; exit 3",
            "kill -SEGV $$",
            "seq 100000",
            "printf '\\033[1mbold\\033[0m' >&2",
        ] {
            let command = Command::new("sh").args(["-c", program]);
            let outcome = executor.run(command.limits(limits.clone())).await.unwrap();
            check(&outcome);
        }
        limits.wall = std::time::Duration::from_millis(10);
        let command = Command::new("sleep").arg("60").limits(limits);
        let mut outcome = executor.run(command).await.unwrap();
        outcome.hidden.push(PathBuf::from("/home/ada/.ssh"));
        check(&outcome);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn kept_file_is_serialized_as_its_size() {
        let executor = Executor::new(Config::default()).unwrap();
        let mut limits = Limits::default();
        (limits.capture_head, limits.capture_tail, limits.keep) = (8, 8, 1000);
        let command = Command::new("seq").arg("1000").limits(limits);
        let outcome = executor.run(command).await.unwrap();
        assert!(outcome.stdout.file.is_some());
        let text = serde_json::to_string(&outcome).unwrap();
        let there: Outcome = serde_json::from_str(&text).unwrap();
        assert_eq!(there.stdout.file, None);
        assert_eq!(there.stdout.kept_bytes, 1000);
        assert_eq!(there.stdout.total_bytes, outcome.stdout.total_bytes);
    }

    #[test]
    fn unknown_and_missing_limits_are_tolerated() {
        let limits: Limits = serde_json::from_str(r#"{"later": 1, "output_hard": 5}"#).unwrap();
        let expected = Limits {
            output_hard: 5,
            ..Limits::default()
        };
        assert_eq!(limits, expected);
    }
}
