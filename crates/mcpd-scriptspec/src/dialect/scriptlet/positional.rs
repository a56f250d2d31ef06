//! Positional arguments of a shell, `$1` to `$9` and `$@`, which Script Kit
//! prompts for like placeholders.

/// Arguments that the code of a block reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Positional {
    /// Numbered arguments up to the last, and whether the code has a fallback for each.
    pub(super) numbered: Vec<bool>,
    /// The code reads all arguments, of any number.
    pub(super) has_all: bool,
}

impl Positional {
    /// Reads code for a shell. Finds nothing if functions or here-documents may have arguments and
    /// symbols of their own.
    pub(super) fn read(code: &str) -> Self {
        let mut found = Self::default();
        if ["()", "function ", "<<", "set -- "]
            .iter()
            .any(|unclear| code.contains(unclear))
        {
            return found;
        }
        let mut is_quoted = false;
        let mut before = '\n';
        let mut rest = code;
        while let Some(first) = rest.chars().next() {
            let mut length = first.len_utf8();
            match first {
                '\\' => length += rest[1..].chars().next().map_or(0, char::len_utf8),
                '"' => is_quoted = !is_quoted,
                '\'' if !is_quoted => {
                    length += rest[1..].find('\'').map_or(rest.len() - 1, |end| end + 1)
                }
                '#' if !is_quoted && before.is_whitespace() => {
                    length = rest.find('\n').unwrap_or(rest.len());
                }
                '$' => found.add(&rest[1..]),
                _ => {}
            }
            before = first;
            rest = &rest[length..];
        }
        found
    }

    /// Adds the argument after a `$`.
    fn add(&mut self, rest: &str) {
        let inside = rest.strip_prefix('{');
        let mut chars = inside.unwrap_or(rest).chars();
        match (chars.next(), chars.next()) {
            (Some('@' | '*'), next) if inside.is_none() || next == Some('}') => self.has_all = true,
            (Some(digit @ '1'..='9'), next) => {
                let place = digit as usize - '1' as usize;
                let is_optional = match (inside, next) {
                    (None, _) | (Some(_), Some('}')) => false,
                    (Some(_), Some(':' | '-' | '+')) => true,
                    _ => return,
                };
                if self.numbered.len() <= place {
                    self.numbered.resize(place + 1, true);
                }
                self.numbered[place] &= is_optional;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Positional;

    #[test]
    fn arguments_are_found_where_a_shell_expands_them() {
        let numbered = |numbered: &[bool]| Positional {
            numbered: numbered.to_vec(),
            has_all: false,
        };
        let all = Positional {
            numbered: Vec::new(),
            has_all: true,
        };
        for (code, expected) in [
            ("echo $1 \"it's $2\"", numbered(&[false, false])),
            ("echo ${2:-none}", numbered(&[true, true])),
            ("echo \"$@\"", all),
            ("awk '{print $1}' # $2", numbered(&[])),
            ("echo \\$1 $0 $# ${#1}", numbered(&[])),
            ("f() { echo $1; }; f x", numbered(&[])),
        ] {
            assert_eq!(Positional::read(code), expected, "{code}");
        }
    }
}
