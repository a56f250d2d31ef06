//! URI templates: matching of URIs, and extraction of variables from them. Supports those
//! expressions of RFC 6570 that can be parsed back from a URI.

use std::{fmt, str::FromStr};

use percent_encoding::{CONTROLS, percent_decode_str, utf8_percent_encode};
use regex::Regex;

/// Maximum length of a template, in characters: untrusted servers may list any
/// number, and each is compiled.
pub(crate) const MAX_LENGTH: usize = 2048;

/// A URI template of text and the expressions `{name}` and `{+name}`; a value of the latter may
/// contain `/`, `?` and `#`.
///
/// ```
/// use mcpd_scriptspec::uri::UriTemplate;
///
/// let template: UriTemplate = "notes://{year}/{+path}.md".parse()?;
/// let values = template.values("notes://2026/a/b%20c.md").expect("it is one of these");
/// assert_eq!(values, [("year", "2026".to_owned()), ("path", "a/b c".to_owned())]);
/// assert_eq!(template.values("notes://2026/a.txt"), None);
/// # Ok::<(), mcpd_scriptspec::uri::TemplateError>(())
/// ```
#[derive(Debug, Clone)]
pub struct UriTemplate {
    source: String,
    variables: Vec<String>,
    literal_len: usize,
    regex: Regex,
}

/// Reason why a text is not a supported template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// An unmatched brace.
    #[error("unmatched brace")]
    Brace,
    /// Another expression of RFC 6570, or an invalid one.
    #[error("`{{{0}}}` is neither `{{name}}` nor `{{+name}}`")]
    Expression(String),
    /// A variable that occurs twice, and could get two values.
    #[error("duplicate variable `{0}`")]
    Repeated(String),
    /// Two adjacent variables, with no text to separate them in a URI.
    #[error("no text separates `{0}` from the variable before it")]
    Adjacent(String),
    /// More than 2048 characters.
    #[error("longer than {MAX_LENGTH} characters")]
    TooLong,
}

impl FromStr for UriTemplate {
    type Err = TemplateError;

    fn from_str(source: &str) -> Result<Self, TemplateError> {
        if source.chars().nth(MAX_LENGTH).is_some() {
            return Err(TemplateError::TooLong);
        }
        let mut variables: Vec<String> = Vec::new();
        let mut literal_len = 0;
        let (authority, mut rest) = source.split_at(authority_len(source));
        // Clients send scheme and host back in lower case.
        let mut pattern = format!("^(?i:{})", escape_literal(authority)?);
        while let Some((literal, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}').ok_or(TemplateError::Brace)?;
            let (name, value) = expression_of(expression)?;
            if variables.iter().any(|known| known == name) {
                return Err(TemplateError::Repeated(name.to_owned()));
            }
            if literal.is_empty() && !variables.is_empty() {
                return Err(TemplateError::Adjacent(name.to_owned()));
            }
            pattern += &escape_literal(literal)?;
            pattern += value;
            literal_len += literal.len();
            variables.push(name.to_owned());
            rest = after;
        }
        pattern += &escape_literal(rest)?;
        pattern.push('$');
        Ok(Self {
            source: source.to_owned(),
            variables,
            literal_len: authority.len() + literal_len + rest.len(),
            regex: Regex::new(&pattern).expect("escaped text and fixed groups are a small pattern"),
        })
    }
}

impl UriTemplate {
    /// The template as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Names of the variables, in their order.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Number of literal bytes in the template: of two that match a URI, the one
    /// with more is more specific.
    #[must_use]
    pub fn literal_len(&self) -> usize {
        self.literal_len
    }

    /// The variables with their values, decoded, if `uri` matches this template. No value is
    /// empty; a value may contain anything, `..` and encoded slashes included.
    #[must_use]
    pub fn values(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let uri = encode_non_ascii(uri);
        let captures = self.regex.captures(&uri)?;
        let groups = captures.iter().skip(1).flatten();
        self.variables
            .iter()
            .zip(groups)
            .map(|(name, group)| {
                let value = percent_decode_str(group.as_str()).decode_utf8().ok()?;
                Some((name.as_str(), value.into_owned()))
            })
            .collect()
    }
}

/// The variable of an expression, and the pattern of its values as
/// [`encode_non_ascii`] returns them.
fn expression_of(expression: &str) -> Result<(&str, &'static str), TemplateError> {
    let (name, pattern) = match expression.strip_prefix('+') {
        Some(name) => (name, "([ -~]+?)"),
        None => (expression, "([ -~&&[^/?#]]+?)"),
    };
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '.';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(TemplateError::Expression(expression.to_owned()));
    }
    Ok((name, pattern))
}

/// Length in bytes of the scheme and the literal part of the host before the first variable.
fn authority_len(source: &str) -> usize {
    let literal = source.find('{').unwrap_or(source.len());
    let scheme = source[..literal].find(':').map_or(0, |colon| colon + 1);
    let Some(host) = source[scheme..literal].strip_prefix("//") else {
        return scheme;
    };
    let end = host.find(['/', '?', '#']).unwrap_or(host.len());
    scheme + "//".len() + end
}

fn escape_literal(literal: &str) -> Result<String, TemplateError> {
    if literal.contains('}') {
        return Err(TemplateError::Brace);
    }
    Ok(regex::escape(&encode_non_ascii(literal)))
}

/// Text with everything outside ASCII encoded: callers may or may not have done so,
/// and this form is compared.
fn encode_non_ascii(text: &str) -> String {
    utf8_percent_encode(text, CONTROLS).to_string()
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
        let template: UriTemplate = template.parse().unwrap();
        let values = template.values(uri);
        let values: Option<Vec<_>> = values
            .as_ref()
            .map(|values| values.iter().map(|(k, v)| (*k, v.as_str())).collect());
        assert_eq!(values.as_deref(), expected, "{uri} from {template}");
    }

    #[test]
    fn variable_matches_one_segment() {
        let template = "test://template/{id}/data";
        check(template, "test://template/123/data", Some(&[("id", "123")]));
        check(
            template,
            "test://template/a%2Fb/data",
            Some(&[("id", "a/b")]),
        );
        check(template, "test://template/a/b/data", None);
        check(template, "test://template//data", None);
        check(template, "test://template/1/data/", None);
        check(template, "x-test://template/1/data", None);
        check("x://{id}", "x://a?b", None);
        check("x://{id}", "x://a#b", None);
    }

    #[test]
    fn reserved_variable_matches_anything() {
        check(
            "file:///{+path}",
            "file:///a/b?c",
            Some(&[("path", "a/b?c")]),
        );
        check("file:///{+path}", "file:///", None);
        check(
            "x://{+dir}/{name}.txt",
            "x://a/b/c.txt",
            Some(&[("dir", "a/b"), ("name", "c")]),
        );
    }

    #[test]
    fn ambiguous_uri_takes_the_first_match() {
        check(
            "x://{a}-{b}",
            "x://1-2-3",
            Some(&[("a", "1"), ("b", "2-3")]),
        );
        check(
            "x://{a}-{b}/c",
            "x://1-2-3/c",
            Some(&[("a", "1"), ("b", "2-3")]),
        );
    }

    #[test]
    fn values_are_decoded_once_and_must_be_utf8() {
        check("x://{a}", "x://a%20b", Some(&[("a", "a b")]));
        check("x://{a}", "x://%2541", Some(&[("a", "%41")]));
        check("x://{a}", "x://100%", Some(&[("a", "100%")]));
        check("x://{a}", "x://%ff", None);
        check("x://{a}", "x://a\nb", Some(&[("a", "a\nb")]));
        check("x://größe/{a}", "x://größe/ö", Some(&[("a", "ö")]));
        check(
            "x://größe/{a}",
            "x://gr%C3%B6%C3%9Fe/%C3%B6",
            Some(&[("a", "ö")]),
        );
    }

    #[test]
    fn scheme_and_host_match_in_any_case() {
        let template = "Memo://Today/Of/{name}";
        check(template, "memo://today/Of/Ada", Some(&[("name", "Ada")]));
        check(template, "memo://today/of/Ada", None);
        check("X:A{b}", "x:A1", Some(&[("b", "1")]));
        check("X:A{b}", "x:a1", None);
    }

    #[test]
    fn template_text_matches_literally() {
        check("x://a.b/{c}", "x://aXb/1", None);
        check("x://(a|b)*/{c}", "x://(a|b)*/1", Some(&[("c", "1")]));
        check("x://fixed", "x://fixed", Some(&[]));
        assert_eq!("x://{a}/b".parse::<UriTemplate>().unwrap().literal_len(), 6);
    }

    #[track_caller]
    fn check_fault(template: &str, message: &str) {
        let error = template.parse::<UriTemplate>().unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn irreversible_template_is_rejected() {
        check_fault("x://{a", "unmatched brace");
        check_fault("x://a}", "unmatched brace");
        check_fault("x://{}", "`{}` is neither `{name}` nor `{+name}`");
        check_fault("x://{?q}", "`{?q}` is neither `{name}` nor `{+name}`");
        check_fault("x://{a,b}", "`{a,b}` is neither `{name}` nor `{+name}`");
        check_fault("x://{a:3}", "`{a:3}` is neither `{name}` nor `{+name}`");
        check_fault("x://{a}/{a}", "duplicate variable `a`");
        check_fault(
            "x://{a}{b}",
            "no text separates `b` from the variable before it",
        );
    }

    #[test]
    fn template_of_any_content_compiles_up_to_the_limit() {
        let variables: String = (0..=u16::MAX)
            .map(|number| format!("/{{{number}}}"))
            .collect();
        let longest = &variables[..variables[..MAX_LENGTH].rfind('/').unwrap()];
        let count = longest.matches('/').count();
        let template: UriTemplate = longest.parse().unwrap();
        let values = template.values(&"/1".repeat(count)).unwrap();
        assert_eq!(values.len(), count);
        let text = "ö".repeat(MAX_LENGTH);
        assert_eq!(
            text.parse::<UriTemplate>().unwrap().values(&text),
            Some(vec![])
        );
        for long in [variables, text + "."] {
            check_fault(&long, "longer than 2048 characters");
        }
    }
}
