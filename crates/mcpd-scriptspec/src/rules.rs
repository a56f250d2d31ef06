//! Every rule that a script's description can break: one table, from which the documentation is
//! made.

use std::fmt;

use crate::{diagnostic::Severity, dialect::Dialect};

/// One rule: what breaking it means, and why it exists.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// What diagnostics carry.
    pub code: Code,
    /// What breaking the rule means for the script.
    pub severity: Severity,
    /// Why the rule exists.
    pub why: &'static str,
    /// The dialect of the examples; without one they are what a script does when asked for
    /// `--help`, as lines of shell.
    pub dialect: Option<Dialect>,
    /// How a script breaks the rule.
    pub bad: &'static str,
    /// The same, mended.
    pub good: &'static str,
}

macro_rules! rules {
    ($($variant:ident $name:literal $severity:ident $(in $dialect:ident)? $why:literal bad $bad:literal good $good:literal)*) => {
        /// The name of a rule; it never changes its meaning and is never used again for another.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $why] $variant,)*
        }

        impl Code {
            /// The name in kebab-case, such as `unknown-field`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        /// Every rule, in the order of the codes.
        pub const RULES: &[Rule] = &[$(Rule {
            code: Code::$variant,
            severity: Severity::$severity,
            why: $why,
            dialect: [$(Some(Dialect::$dialect),)? None][0],
            bad: $bad,
            good: $good,
        },)*];
    };
}

impl Code {
    /// The rule of this name.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

rules! {
    HelpFailed "help-failed" Error
    "A script that ends `--help` with another exit code than 0 may have printed anything: its description cannot be trusted."
    bad "exit 2"
    good r#"echo '{"description": "Says hello"}'
exit 0"#

    HelpKilled "help-killed" Error
    "A signal ended `--help`, so what was printed may be cut short."
    bad "kill -SEGV $$"
    good r#"echo '{"description": "Says hello"}'"#

    HelpTimedOut "help-timed-out" Error
    "Every script is asked for its help at start; one that does not answer would hold up all others."
    bad r#"sleep 60; echo '{"description": "Says hello"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    HelpTooLarge "help-too-large" Error
    "A description is read by models; one of this size is an accident, such as a tool's output printed in place of its help."
    bad "cat /dev/zero"
    good r#"echo '{"description": "Says hello"}'"#

    HelpNotStarted "help-not-started" Error
    "A script that cannot be started, for want of its interpreter or the right to execute it, can answer no call."
    bad "#!/usr/bin/env no-such-interpreter"
    good r#"echo '{"description": "Says hello"}'"#

    FileTooLarge "file-too-large" Error
    "A file that describes itself is read as a whole at every start; one of this size is an accident, such as a bundle with everything it depends on."
    bad "yes 'REM more' | head -n 1000000 > greet.bas"
    good r#"echo '{"description": "Says hello"}'"#

    MissingInterpreter "missing-interpreter" Error
    "A file that is no program itself is run by the interpreter for its extension; without one it can answer no call."
    bad "cp greet.xyz tools/ && cp greet.xyz.mcpd.toml tools/"
    good r#"echo '{"description": "Says hello"}'"#

    HelpNotUtf8 "help-not-utf8" Error
    "JSON is UTF-8; bytes in another encoding would reach clients as other characters than the author wrote."
    bad r#"printf '{"description": "Gr\374\337e"}'"#
    good r#"echo '{"description": "Grüße"}'"#

    ByteOrderMark "byte-order-mark" Warning
    "JSON texts do not begin with a byte order mark, and other readers of the same output refuse it."
    bad r#"printf '\357\273\277{"description": "Says hello"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    MissingMetadata "missing-metadata" Error
    "Stdout holds the metadata; without it nobody can tell a script that describes itself from one that ignores `--help` and starts to work."
    bad r#"echo '{"name": {"required": true, "value_type": "string"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    HelpNotJson "help-not-json" Error
    "Both outputs of `--help` are read by a machine: each is one strict JSON value, without comments, trailing commas or single quotes."
    bad r#"echo "{'description': 'Says hello'}""#
    good r#"echo '{"description": "Says hello"}'"#

    TextAfterJson "text-after-json" Error
    "One output holds one JSON object and nothing else; what follows it would be lost."
    bad r#"echo '{"description": "Says hello"} done'"#
    good r#"echo '{"description": "Says hello"}'"#

    NoiseOnStderr "noise-on-stderr" Warning
    "Interpreters print warnings of their own to stderr, of a locale that is not there or of an old module: one JSON object on lines of its own among them is read all the same, but a second one would make it ambiguous."
    bad r#"echo 'sh: warning: setlocale: cannot change locale' >&2
echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    NestingTooDeep "nesting-too-deep" Error
    "No description needs more than a few levels; a bound keeps every reader of it safe."
    bad r#"python3 -c 'print("[" * 100000)'"#
    good r#"echo '{"description": "Says hello"}'"#

    SwappedStreams "swapped-streams" Error
    "The metadata belongs on stdout and the options on stderr; the other way round neither means anything."
    bad r#"echo '{"name": {"required": true, "value_type": "string"}}'
echo '{"description": "Greet someone by name"}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    MetadataNotObject "metadata-not-object" Error
    "The metadata is a JSON object, so that fields can be added without breaking anyone."
    bad r#"echo '"Says hello"'"#
    good r#"echo '{"description": "Says hello"}'"#

    OptionsNotObject "options-not-object" Error
    "The options are a JSON object from name to definition; log lines on stderr of `--help` end up here too."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '["name"]' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true}}' >&2"#

    OptionNotObject "option-not-object" Error
    "Each option is a JSON object of fields, even where one field would do."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": "string"}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    DuplicateKey "duplicate-key" Error
    "Readers of JSON disagree about which of two equal keys counts."
    bad r#"echo '{"description": "Says hello", "description": "Says goodbye"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    DuplicateOption "duplicate-option" Error
    "Readers of JSON disagree about which of two options of one name counts."
    bad r#"echo '{"description": "Adds"}'
echo '{"a": {"required": true}, "a": {"required": true}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"a": {"required": true}, "b": {"required": true}}' >&2"#

    UnknownField "unknown-field" Warning
    "A field that nobody reads is most often a known one misspelt."
    bad r#"echo '{"descripton": "Says hello"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    NullField "null-field" Warning
    "A field that is `null` counts as absent; leaving it out says so plainly."
    bad r#"echo '{"description": "Says hello", "title": null}'"#
    good r#"echo '{"description": "Says hello"}'"#

    FieldTypeMismatch "field-type-mismatch" Error
    "A field of the wrong type was meant to say something, and guessing what is worse than asking."
    bad r#"echo '{"description": "Counts", "state": "yes"}'"#
    good r#"echo '{"description": "Counts", "state": true}'"#

    TextTooLong "text-too-long" Error
    "Every model reads every description on every turn; text of this size crowds out the conversation."
    bad r#"python3 -c 'print("{\"title\": \"" + "x" * 1000000 + "\"}")'"#
    good r#"echo '{"title": "Hello", "description": "Says hello"}'"#

    HiddenCharacter "hidden-character" Error
    "Control, direction and invisible characters show people another text than models and terminals read."
    bad r#"echo '{"description": "Says \u202eolleh"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    MissingDescription "missing-description" Warning
    "The description is all a model has to decide when to use the tool."
    bad r#"echo '{"title": "Hello"}'"#
    good r#"echo '{"title": "Hello", "description": "Says hello"}'"#

    UndescribedOption "undescribed-option" Info
    "A model fills an option better when it is told what the option means."
    bad r#"echo '{"description": "Adds"}'
echo '{"a": {"required": true, "value_type": "float"}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"a": {"description": "First summand", "required": true, "value_type": "float"}}' >&2"#

    InvalidOptionName "invalid-option-name" Error
    "The name is part of the name of an environment variable, which cannot be empty and cannot hold `=` or a control character."
    bad r#"echo '{"description": "Adds"}'
echo '{"a=b": {"required": true}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"a_b": {"required": true}}' >&2"#

    UnportableOptionName "unportable-option-name" Warning
    "Some model providers refuse a whole request over one property name outside `[A-Za-z0-9_.-]{1,64}`, so lists show it in those characters; calls may use both spellings."
    bad r#"echo '{"description": "Adds"}'
echo '{"größe": {"required": true}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"size": {"required": true}}' >&2"#

    AmbiguousOptionVariable "ambiguous-option-variable" Error
    "An option whose name is no shell identifier is also passed under a name with `_` for every other character; two options cannot share it."
    bad r#"echo '{"description": "Fetches a page"}'
echo '{"max-age": {"required": true}, "max_age": {"required": true}}' >&2"#
    good r#"echo '{"description": "Fetches a page"}'
echo '{"max-age": {"required": true}}' >&2"#

    UnknownValueType "unknown-value-type" Error
    "A type that mcpd does not know cannot be checked, and a model would be told nothing about it."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "int"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer"}}' >&2"#

    UntypedOption "untyped-option" Info
    "A model is told nothing about a value of any type, and some clients, such as Gemini CLI and AutoGen, leave out a tool with one."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    EmptyEnum "empty-enum" Error
    "No value is one of none, so no call could ever be valid."
    bad r#"echo '{"description": "Calculator"}'
echo '{"operation": {"required": true, "value_type": {"enum": []}}}' >&2"#
    good r#"echo '{"description": "Calculator"}'
echo '{"operation": {"required": true, "value_type": {"enum": ["add", "subtract"]}}}' >&2"#

    DuplicateEnumValue "duplicate-enum-value" Error
    "JSON Schema wants the values of an enum to differ, and some clients refuse the whole list of tools over it."
    bad r#"echo '{"description": "Calculator"}'
echo '{"operation": {"required": true, "value_type": {"enum": ["add", "add"]}}}' >&2"#
    good r#"echo '{"description": "Calculator"}'
echo '{"operation": {"required": true, "value_type": {"enum": ["add", "subtract"]}}}' >&2"#

    InvertedBounds "inverted-bounds" Error
    "No value lies between a minimum and a smaller maximum, so no call could ever be valid."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "size": {"min": 9, "max": 1}}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "size": {"min": 1, "max": 9}}}' >&2"#

    BoundsOnUnboundedType "bounds-on-unbounded-type" Warning
    "A boolean has no size, an enum lists its values, and `any` cannot publish bounds: the size tells a model nothing."
    bad r#"echo '{"description": "Shouts"}'
echo '{"loud": {"required": true, "value_type": "boolean", "size": {"max": 1}}}' >&2"#
    good r#"echo '{"description": "Shouts"}'
echo '{"loud": {"required": true, "value_type": "boolean"}}' >&2"#

    OptionalWithoutDefault "optional-without-default" Warning
    "Without a default the variable is not set at all when the option is left out, which scripts tend to forget."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": false, "value_type": "integer"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": false, "value_type": "integer", "default_value": 1}}' >&2"#

    RequiredWithDefault "required-with-default" Warning
    "The default of a required option is published and never used."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "default_value": 1}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": false, "value_type": "integer", "default_value": 1}}' >&2"#

    DefaultTypeMismatch "default-type-mismatch" Error
    "A default is passed to the script as if a caller had sent it, so it must be what a caller could send."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "default_value": "one"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "default_value": 1}}' >&2"#

    DefaultOutOfBounds "default-out-of-bounds" Error
    "A default outside the option's own bounds or list could not be sent by any caller."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "size": {"max": 9}, "default_value": 10}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "size": {"max": 9}, "default_value": 1}}' >&2"#

    ExampleMismatch "example-mismatch" Error
    "Models copy examples, so each must be a value that the option takes."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "examples": ["one"]}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "examples": [1]}}' >&2"#

    UnusedField "unused-field" Warning
    "A field that means nothing where it stands was meant for something that does not happen."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "pattern": "^[0-9]$"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "size": {"min": 0, "max": 9}}}' >&2"#

    UnknownChoice "unknown-choice" Error
    "The field takes one of a few words, and another one was meant to change something."
    bad r#"echo '{"description": "Counts", "output": "JSON"}'"#
    good r#"echo '{"description": "Counts", "output": "json"}'"#

    InvalidPattern "invalid-pattern" Error
    "Patterns are matched in linear time whatever callers send, which look-around and back-references rule out."
    bad r#"echo '{"description": "Looks up a word"}'
echo '{"word": {"required": true, "value_type": "string", "pattern": "(a"}}' >&2"#
    good r#"echo '{"description": "Looks up a word"}'
echo '{"word": {"required": true, "value_type": "string", "pattern": "^[a-z]+$"}}' >&2"#

    InvalidHeader "invalid-header" Error
    "Clients leave out a tool whose `x-mcp-header` breaks the protocol: a token, unique, on a string, integer, boolean or enum; and a header is no place for a secret."
    bad r#"echo '{"description": "Queries a region"}'
echo '{"region": {"required": true, "value_type": "string", "header": "My Region"}}' >&2"#
    good r#"echo '{"description": "Queries a region"}'
echo '{"region": {"required": true, "value_type": "string", "header": "Region"}}' >&2"#

    InvalidArgument "invalid-argument" Error
    "Words on a command line must mean to the script what the option means: each flag is that of one option, and a script that reads no flags can't be given any."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "argument": "name"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "argument": "--name"}}' >&2"#

    SecretArgument "secret-argument" Info
    "Every user of a machine can see the command lines of its processes, secrets included; stdin and variables are for the script alone."
    bad r#"echo '{"description": "Logs in"}'
echo '{"password": {"required": true, "secret": true, "argument": "--password"}}' >&2"#
    good r#"echo '{"description": "Logs in"}'
echo '{"password": {"required": true, "secret": true, "variable": "PASSWORD"}}' >&2"#

    InvalidVariable "invalid-variable" Error
    "A variable is read by whoever knows its name: callers must not choose where programs are searched or what an interpreter loads, and no two options can share one."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "variable": "PATH"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "variable": "GREETED"}}' >&2"#

    InvalidSchema "invalid-schema" Error
    "Arguments are held to the schema before a run, and output after it: a schema that is none, or needs another document, checks nothing. Arguments are an object, and some clients refuse every tool of a server over another schema."
    bad r#"echo '{"description": "Draws", "input_schema": {"anyOf": []}}'"#
    good r#"echo '{"description": "Draws", "input_schema": {"type": "object", "properties": {}}}'"#

    UnportableSchema "unportable-schema" Warning
    "One schema in a form that a client or a model provider does not read can take all tools of all servers from a model, so lists show another form of it, which accepts the same values."
    bad r#"echo '{"description": "Asks", "input_schema": {"type": "object", "properties": {"model": true}}}'"#
    good r#"echo '{"description": "Asks", "input_schema": {"type": "object", "properties": {"model": {"type": "string"}}}}'"#

    ForbiddenDefault "forbidden-default" Warning
    "Clients that hold a value to its `format` refuse a tool whose own default breaks it, so such a default is not listed; the script gets it all the same."
    bad r#"echo '{"description": "Counts the orders of a day"}'
printf '{"day": {"value_type": "string", "format": "date", "default_value": ""}}' >&2"#
    good r#"echo '{"description": "Counts the orders of a day"}'
echo '{"day": {"value_type": "string", "default_value": ""}}' >&2"#

    ConflictingFields "conflicting-fields" Error
    "Two fields that exclude each other leave open which one counts."
    bad r#"echo '{"description": "Draws", "input_schema": {"type": "object"}}'
echo '{"shape": {"required": true}}' >&2"#
    good r#"echo '{"description": "Draws"}'
echo '{"shape": {"required": true}}' >&2"#

    ResourceWithoutUri "resource-without-uri" Error
    "A resource is read by its URI: without one nobody can ask for it."
    bad r#"echo '{"description": "Notes of today", "kind": "resource"}'"#
    good r#"echo '{"description": "Notes of today", "kind": "resource", "uri": "notes://today"}'"#

    InvalidUri "invalid-uri" Error
    "A URI starts with a scheme; clients refuse, or resolve against something else, what does not."
    bad r#"echo '{"description": "Notes of today", "kind": "resource", "uri": "today"}'"#
    good r#"echo '{"description": "Notes of today", "kind": "resource", "uri": "notes://today"}'"#

    UnnormalizedUri "unnormalized-uri" Warning
    "Clients parse the URIs of a list and send them back with scheme and host in small letters and other letters than ASCII encoded, so a URI is listed and compared in that form."
    bad r#"echo '{"description": "How large it is", "kind": "resource", "uri": "Notes://größe"}'"#
    good r#"echo '{"description": "How large it is", "kind": "resource", "uri": "notes://size"}'"#

    UndeclaredVariable "undeclared-variable" Error
    "The variables of a URI template are passed as options, so each must be one."
    bad r#"echo '{"description": "Notes of a day", "kind": "resource", "uri_template": "notes://{day}"}'"#
    good r#"echo '{"description": "Notes of a day", "kind": "resource", "uri_template": "notes://{day}"}'
echo '{"day": {"required": true, "value_type": "string"}}' >&2"#

    UnfillableOption "unfillable-option" Error
    "Prompts and resources are given texts at most, and a resource only what is in its URI: if a required option can't be among that, every call fails."
    bad r#"echo '{"description": "Notes of a day", "kind": "resource", "uri": "notes://today"}'
echo '{"day": {"required": true, "value_type": "string"}}' >&2"#
    good r#"echo '{"description": "Notes of a day", "kind": "resource", "uri_template": "notes://{day}"}'
echo '{"day": {"required": true, "value_type": "string"}}' >&2"#

    UnknownCapability "unknown-capability" Error
    "A client is asked for the capabilities that a script requires; one that does not exist has no client, and would keep nobody from calling."
    bad r#"echo '{"description": "Summarizes", "requires": ["sampeling"]}'"#
    good r#"echo '{"description": "Summarizes", "requires": ["sampling"]}'"#

    SourceNotUtf8 "source-not-utf8" Error
    "Descriptions reach clients as UTF-8; bytes in another encoding would be other characters than the author wrote."
    bad r#"printf 'DESCRIPTION "Gr\374\337e"' > greet.bas"#
    good r#"echo '{"description": "Grüße"}'"#

    SourceSyntax "source-syntax" Error in Basic
    "A description that can only be read in part may mean something else than its author thinks, so none of it counts."
    bad r#"DESCRIPTION "Greet someone"
PARAM name string"#
    good r#"DESCRIPTION "Greet someone"
PARAM name AS string DESCRIPTION "Who""#

    SourceNotConstant "source-not-constant" Error in ScriptKit
    "A file is read and not run to find out what it says of itself, so every value must stand there as it is."
    bad r#"schema = { input: { count: { type: "integer", max: limits.count } } }"#
    good r#"// Description: Counts
schema = { input: { count: { type: "integer", max: 9, required: true, description: "How far" } } }"#

    SourceUnusableName "source-unusable-name" Warning in ScriptKit
    "A tool is called by the ASCII letters and digits of its name; without any, the name of its file is taken."
    bad r#"// Name: 計算
// Description: Counts
schema = { input: { count: { type: "integer", required: true, description: "How far" } } }"#
    good r#"// Name: Count
// Description: Counts
schema = { input: { count: { type: "integer", required: true, description: "How far" } } }"#

    SourceDuplicateName "source-duplicate-name" Error in Scriptlets
    "Of two tools in one file that have the same name, callers could reach only one."
    bad r#"## Greet
```sh
echo hello
```
## greet!
```sh
echo hi
```"#
    good r#"## Greet
Says hello.
```sh
echo hello
```
## Greet in short
Says hi.
```sh
echo hi
```"#

    SourceMisplacedPlaceholder "source-misplaced-placeholder" Error in Scriptlets
    "Values are passed as variables and never pasted into code, so a placeholder works only where a shell expands a variable."
    bad r#"## Greet
```sh
echo 'hello {{name}}'
```"#
    good r#"## Greet
Greets someone.
```sh
echo "hello {{name}}"
```"#

    SourceNotRun "source-not-run" Info in Scriptlets
    "What pastes into a window or opens a program means nothing without a desktop, and a text is no program: such a scriptlet is passed over, and the others in the file are served."
    bad r#"## Signature
```paste
Kind regards
```"#
    good r#"## Signature
The end of a letter.
```template
Kind regards
```"#

    SourceUnsupported "source-unsupported" Warning in Raycast
    "What mcpd can't express is left unknown and never guessed, so callers are told less of the script than it says of itself."
    bad r#"# @raycast.title Greet
# @raycast.description Greets everybody
# @raycast.currentDirectoryPath ~"#
    good r#"# @raycast.title Greet
# @raycast.description Greets everybody"#
}

#[cfg(test)]
mod tests;
