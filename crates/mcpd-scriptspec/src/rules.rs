//! Every rule that a script's description can break: one table, from which the documentation is
//! made.

mod rule;

pub use rule::Rule;

use crate::{diagnostic::Severity, dialect::Dialect};

macro_rules! rules {
    ($($variant:ident $name:literal $severity:ident $(in $dialect:ident)? $why:literal bad $bad:literal good $good:literal)*) => {
        /// Name of a rule. Its meaning never changes, and it is never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $why] $variant,)*
        }

        impl Code {
            /// Name in kebab-case, such as `unknown-field`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        /// All rules, in the order of the codes.
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

rules! {
    HelpFailed "help-failed" Error
    "If `--help` ends with an exit code other than 0, its output may be anything, so the description cannot be trusted."
    bad "exit 2"
    good r#"echo '{"description": "Says hello"}'
exit 0"#

    HelpKilled "help-killed" Error
    "A signal killed `--help`, so its output may be incomplete."
    bad "kill -SEGV $$"
    good r#"echo '{"description": "Says hello"}'"#

    HelpTimedOut "help-timed-out" Error
    "Every script runs with `--help` when the server starts; one that does not answer would delay all others."
    bad r#"sleep 60; echo '{"description": "Says hello"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    HelpTooLarge "help-too-large" Error
    "Models read the description. One of this size is an accident, such as the output of the tool in place of its help."
    bad "cat /dev/zero"
    good r#"echo '{"description": "Says hello"}'"#

    HelpNotStarted "help-not-started" Error
    "A script that cannot start, because its interpreter or the permission to execute it is missing, cannot answer a call."
    bad "#!/usr/bin/env no-such-interpreter"
    good r#"echo '{"description": "Says hello"}'"#

    FileTooLarge "file-too-large" Error
    "A file with its own description is read as a whole at every start. One of this size is an accident, such as a bundle with all its dependencies."
    bad "yes 'REM more' | head -n 1000000 > greet.bas"
    good r#"echo '{"description": "Says hello"}'"#

    MissingInterpreter "missing-interpreter" Error
    "A file that is not a program runs with the interpreter for its extension; without one it cannot answer a call."
    bad "cp greet.xyz tools/ && cp greet.xyz.mcpd.toml tools/"
    good r#"echo '{"description": "Says hello"}'"#

    HelpNotUtf8 "help-not-utf8" Error
    "JSON is UTF-8. Bytes in another encoding would reach clients as different characters than the author wrote."
    bad r#"printf '{"description": "Gr\374\337e"}'"#
    good r#"echo '{"description": "Grüße"}'"#

    ByteOrderMark "byte-order-mark" Warning
    "JSON texts do not begin with a byte order mark, and other readers of the same output refuse it."
    bad r#"printf '\357\273\277{"description": "Says hello"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    MissingMetadata "missing-metadata" Error
    "Stdout holds the metadata. Without it, a script that describes itself cannot be distinguished from one that ignores `--help` and starts to work."
    bad r#"echo '{"name": {"required": true, "value_type": "string"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    HelpNotJson "help-not-json" Error
    "Both outputs of `--help` are read by a machine. Each must be one strict JSON value, without comments, trailing commas or single quotes."
    bad r#"echo "{'description': 'Says hello'}""#
    good r#"echo '{"description": "Says hello"}'"#

    TextAfterJson "text-after-json" Error
    "An output holds one JSON object and nothing else; anything after it would be lost."
    bad r#"echo '{"description": "Says hello"} done'"#
    good r#"echo '{"description": "Says hello"}'"#

    NoiseOnStderr "noise-on-stderr" Warning
    "Interpreters print warnings to stderr, for example about a missing locale or an outdated module. One JSON object on lines of its own is still found among them, but a second one would make it ambiguous."
    bad r#"echo 'sh: warning: setlocale: cannot change locale' >&2
echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    NestingTooDeep "nesting-too-deep" Error
    "No description needs more than a few levels of nesting; a limit keeps every reader safe."
    bad r#"python3 -c 'print("[" * 100000)'"#
    good r#"echo '{"description": "Says hello"}'"#

    SwappedStreams "swapped-streams" Error
    "The metadata belongs on stdout and the options on stderr; in the wrong stream neither has a meaning."
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
    "An unknown field is most often a misspelling of a known one."
    bad r#"echo '{"descripton": "Says hello"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    NullField "null-field" Warning
    "A field that is `null` counts as absent; omitting it is clearer."
    bad r#"echo '{"description": "Says hello", "title": null}'"#
    good r#"echo '{"description": "Says hello"}'"#

    FieldTypeMismatch "field-type-mismatch" Error
    "A field of the wrong type was meant to have an effect, and guessing the effect is worse than asking."
    bad r#"echo '{"description": "Counts", "state": "yes"}'"#
    good r#"echo '{"description": "Counts", "state": true}'"#

    TextTooLong "text-too-long" Error
    "Models read every description on every turn; text of this size crowds out the conversation."
    bad r#"python3 -c 'print("{\"title\": \"" + "x" * 1000000 + "\"}")'"#
    good r#"echo '{"title": "Hello", "description": "Says hello"}'"#

    HiddenCharacter "hidden-character" Error
    "Control characters, direction marks and invisible characters show people a different text than models and terminals read."
    bad r#"echo '{"description": "Says \u202eolleh"}'"#
    good r#"echo '{"description": "Says hello"}'"#

    MissingDescription "missing-description" Warning
    "A model decides when to use the tool by its description alone."
    bad r#"echo '{"title": "Hello"}'"#
    good r#"echo '{"title": "Hello", "description": "Says hello"}'"#

    UndescribedOption "undescribed-option" Info
    "A model fills in an option better if it knows what the option means."
    bad r#"echo '{"description": "Adds"}'
echo '{"a": {"required": true, "value_type": "float"}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"a": {"description": "First summand", "required": true, "value_type": "float"}}' >&2"#

    InvalidOptionName "invalid-option-name" Error
    "The name becomes part of the name of an environment variable, so it must not be empty or contain `=` or a control character."
    bad r#"echo '{"description": "Adds"}'
echo '{"a=b": {"required": true}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"a_b": {"required": true}}' >&2"#

    UnportableOptionName "unportable-option-name" Warning
    "Some model providers refuse a whole request because of one property name outside `[A-Za-z0-9_.-]{1,64}`, so lists show it in those characters. Calls may use both spellings."
    bad r#"echo '{"description": "Adds"}'
echo '{"größe": {"required": true}}' >&2"#
    good r#"echo '{"description": "Adds"}'
echo '{"size": {"required": true}}' >&2"#

    AmbiguousOptionVariable "ambiguous-option-variable" Error
    "An option whose name is not a shell identifier is also passed under a name with `_` for every other character. Two options cannot share that name."
    bad r#"echo '{"description": "Fetches a page"}'
echo '{"max-age": {"required": true}, "max_age": {"required": true}}' >&2"#
    good r#"echo '{"description": "Fetches a page"}'
echo '{"max-age": {"required": true}}' >&2"#

    UnknownValueType "unknown-value-type" Error
    "Values of an unknown type cannot be checked, and a model would learn nothing about them."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "int"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer"}}' >&2"#

    UntypedOption "untyped-option" Info
    "A model learns nothing about an option without a type, and some clients, such as Gemini CLI and AutoGen, drop a tool that has one."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "value_type": "string"}}' >&2"#

    EmptyEnum "empty-enum" Error
    "No value matches an empty enum, so no call could ever be valid."
    bad r#"echo '{"description": "Calculator"}'
echo '{"operation": {"required": true, "value_type": {"enum": []}}}' >&2"#
    good r#"echo '{"description": "Calculator"}'
echo '{"operation": {"required": true, "value_type": {"enum": ["add", "subtract"]}}}' >&2"#

    DuplicateEnumValue "duplicate-enum-value" Error
    "JSON Schema requires the values of an enum to differ, and some clients refuse the whole list of tools otherwise."
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
    "A boolean has no size, an enum lists its values, and `any` cannot publish bounds, so callers do not see the size."
    bad r#"echo '{"description": "Shouts"}'
echo '{"loud": {"required": true, "value_type": "boolean", "size": {"max": 1}}}' >&2"#
    good r#"echo '{"description": "Shouts"}'
echo '{"loud": {"required": true, "value_type": "boolean"}}' >&2"#

    OptionalWithoutDefault "optional-without-default" Warning
    "Without a default the variable is not set if a call omits the option, which scripts tend to forget."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": false, "value_type": "integer"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": false, "value_type": "integer", "default_value": 1}}' >&2"#

    RequiredWithDefault "required-with-default" Warning
    "The default of a required option is published, but never used."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "default_value": 1}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": false, "value_type": "integer", "default_value": 1}}' >&2"#

    DefaultTypeMismatch "default-type-mismatch" Error
    "A default is passed to the script as if a caller had sent it, so it must be a value that a caller could send."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "default_value": "one"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "default_value": 1}}' >&2"#

    DefaultOutOfBounds "default-out-of-bounds" Error
    "A default must be a value that a caller could send, within the bounds or the list of the option."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "size": {"max": 9}, "default_value": 10}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"value_type": "integer", "size": {"max": 9}, "default_value": 1}}' >&2"#

    ExampleMismatch "example-mismatch" Error
    "Models copy examples, so each must be a value that the option accepts."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "examples": ["one"]}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "examples": [1]}}' >&2"#

    UnusedField "unused-field" Warning
    "The field has no effect in this place, so the effect that the author intended does not happen."
    bad r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "pattern": "^[0-9]$"}}' >&2"#
    good r#"echo '{"description": "Counts"}'
echo '{"step": {"required": true, "value_type": "integer", "size": {"min": 0, "max": 9}}}' >&2"#

    UnknownChoice "unknown-choice" Error
    "The field accepts one of a few words; any other was meant to have an effect that mcpd does not know."
    bad r#"echo '{"description": "Counts", "output": "JSON"}'"#
    good r#"echo '{"description": "Counts", "output": "json"}'"#

    InvalidPattern "invalid-pattern" Error
    "Patterns are matched in linear time, whatever callers send. Look-around and back-references make that impossible."
    bad r#"echo '{"description": "Looks up a word"}'
echo '{"word": {"required": true, "value_type": "string", "pattern": "(a"}}' >&2"#
    good r#"echo '{"description": "Looks up a word"}'
echo '{"word": {"required": true, "value_type": "string", "pattern": "^[a-z]+$"}}' >&2"#

    InvalidHeader "invalid-header" Error
    "Clients drop a tool whose `x-mcp-header` violates the protocol: it must be a token, unique, and on a string, integer, boolean or enum. Headers are also no place for a secret."
    bad r#"echo '{"description": "Queries a region"}'
echo '{"region": {"required": true, "value_type": "string", "header": "My Region"}}' >&2"#
    good r#"echo '{"description": "Queries a region"}'
echo '{"region": {"required": true, "value_type": "string", "header": "Region"}}' >&2"#

    InvalidArgument "invalid-argument" Error
    "Each word on the command line must have the meaning of its option for the script: no two options share a flag, a value stands at one place, and a script that reads no flags gets none. No shell reads the words, so quotes and operators would reach the program."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "argument": "name"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "argument": "--name"}}' >&2"#

    SecretArgument "secret-argument" Info
    "Every user of a machine can see the command lines of its processes, including secrets. Stdin and variables are visible to the script alone."
    bad r#"echo '{"description": "Logs in"}'
echo '{"password": {"required": true, "secret": true, "argument": "--password"}}' >&2"#
    good r#"echo '{"description": "Logs in"}'
echo '{"password": {"required": true, "secret": true, "variable": "PASSWORD"}}' >&2"#

    InvalidVariable "invalid-variable" Error
    "A variable affects every program that knows its name. Callers must not choose where programs are searched or what an interpreter loads, and no two options can share a variable."
    bad r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "variable": "PATH"}}' >&2"#
    good r#"echo '{"description": "Greet someone by name"}'
echo '{"name": {"required": true, "variable": "GREETED"}}' >&2"#

    InvalidSchema "invalid-schema" Error
    "Arguments are validated against the schema before a run, and output after it. An invalid schema, or one that needs another document, validates nothing. The schema of arguments must describe an object, because some clients otherwise refuse every tool of the server."
    bad r#"echo '{"description": "Draws", "input_schema": {"anyOf": []}}'"#
    good r#"echo '{"description": "Draws", "input_schema": {"type": "object", "properties": {}}}'"#

    UnportableSchema "unportable-schema" Warning
    "One schema in a form that a client or a model provider does not understand can deprive a model of all tools of all servers. Lists therefore show an equivalent form, which accepts the same values."
    bad r#"echo '{"description": "Asks", "input_schema": {"type": "object", "properties": {"model": true}}}'"#
    good r#"echo '{"description": "Asks", "input_schema": {"type": "object", "properties": {"model": {"type": "string"}}}}'"#

    ForbiddenDefault "forbidden-default" Warning
    "Clients that validate `format` refuse a tool whose own default violates it, so such a default is not listed. The script still gets it."
    bad r#"echo '{"description": "Counts the orders of a day"}'
printf '{"day": {"value_type": "string", "format": "date", "default_value": ""}}' >&2"#
    good r#"echo '{"description": "Counts the orders of a day"}'
echo '{"day": {"value_type": "string", "default_value": ""}}' >&2"#

    ConflictingFields "conflicting-fields" Error
    "If two fields exclude each other, it is unclear which one applies."
    bad r#"echo '{"description": "Draws", "input_schema": {"type": "object"}}'
echo '{"shape": {"required": true}}' >&2"#
    good r#"echo '{"description": "Draws"}'
echo '{"shape": {"required": true}}' >&2"#

    ResourceWithoutUri "resource-without-uri" Error
    "Clients read a resource by its URI; without one it is unreachable."
    bad r#"echo '{"description": "Notes of today", "kind": "resource"}'"#
    good r#"echo '{"description": "Notes of today", "kind": "resource", "uri": "notes://today"}'"#

    InvalidUri "invalid-uri" Error
    "A URI begins with a scheme. Without one, clients refuse it or resolve it against another URI."
    bad r#"echo '{"description": "Notes of today", "kind": "resource", "uri": "today"}'"#
    good r#"echo '{"description": "Notes of today", "kind": "resource", "uri": "notes://today"}'"#

    UnnormalizedUri "unnormalized-uri" Warning
    "Clients parse the URIs of a list and send them back with scheme and host in lower case and non-ASCII letters encoded, so a URI is listed and compared in that form."
    bad r#"echo '{"description": "How large it is", "kind": "resource", "uri": "Notes://größe"}'"#
    good r#"echo '{"description": "How large it is", "kind": "resource", "uri": "notes://size"}'"#

    UndeclaredVariable "undeclared-variable" Error
    "The variables of a URI template are passed as options, so each must be declared as one."
    bad r#"echo '{"description": "Notes of a day", "kind": "resource", "uri_template": "notes://{day}"}'"#
    good r#"echo '{"description": "Notes of a day", "kind": "resource", "uri_template": "notes://{day}"}'
echo '{"day": {"required": true, "value_type": "string"}}' >&2"#

    UnfillableOption "unfillable-option" Error
    "Prompts and resources get only text, and a resource only the variables of its URI. If a required option cannot be passed that way, every call fails."
    bad r#"echo '{"description": "Notes of a day", "kind": "resource", "uri": "notes://today"}'
echo '{"day": {"required": true, "value_type": "string"}}' >&2"#
    good r#"echo '{"description": "Notes of a day", "kind": "resource", "uri_template": "notes://{day}"}'
echo '{"day": {"required": true, "value_type": "string"}}' >&2"#

    UnknownCapability "unknown-capability" Error
    "A call needs a client with the capabilities that the script requires. No client has an unknown capability, so every call would be refused."
    bad r#"echo '{"description": "Summarizes", "requires": ["sampeling"]}'"#
    good r#"echo '{"description": "Summarizes", "requires": ["sampling"]}'"#

    SourceNotUtf8 "source-not-utf8" Error
    "Descriptions reach clients as UTF-8. Bytes in another encoding would become different characters than the author wrote."
    bad r#"printf 'DESCRIPTION "Gr\374\337e"' > greet.bas"#
    good r#"echo '{"description": "Grüße"}'"#

    SourceSyntax "source-syntax" Error in Basic
    "A description that is readable only in part may differ from what its author meant, so none of it is used."
    bad r#"DESCRIPTION "Greet someone"
PARAM name string"#
    good r#"DESCRIPTION "Greet someone"
PARAM name AS string DESCRIPTION "Who""#

    SourceNotConstant "source-not-constant" Error in ScriptKit
    "The description is read without running the file, so every value must be a literal."
    bad r#"schema = { input: { count: { type: "integer", max: limits.count } } }"#
    good r#"// Description: Counts
schema = { input: { count: { type: "integer", max: 9, required: true, description: "How far" } } }"#

    SourceUnusableName "source-unusable-name" Warning in ScriptKit
    "A tool is called by the ASCII letters and digits of its name; without any, the name of its file is used."
    bad r#"// Name: 計算
// Description: Counts
schema = { input: { count: { type: "integer", required: true, description: "How far" } } }"#
    good r#"// Name: Count
// Description: Counts
schema = { input: { count: { type: "integer", required: true, description: "How far" } } }"#

    SourceDuplicateName "source-duplicate-name" Error in Scriptlets
    "If two tools in one file have the same name, callers can reach only one of them."
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
    "Values are passed as variables and never inserted into code, so a placeholder works only where a shell expands a variable."
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
    "A scriptlet that pastes into a window or opens a program needs a desktop, and plain text is not a program. Such a scriptlet is passed over; the others in the file are served."
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
    "mcpd omits what it cannot express and never guesses, so clients see less than the script declares."
    bad r#"# @raycast.title Greet
# @raycast.description Greets everybody
# @raycast.currentDirectoryPath ~"#
    good r#"# @raycast.title Greet
# @raycast.description Greets everybody"#
}

#[cfg(test)]
mod tests;
