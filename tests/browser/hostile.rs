//! Scripts, files and skills that try to get markup, code, control characters and marks of
//! direction into the page of the console, by all that it shows of them.

use std::fs;

use mcpd_tests::Sandbox;

const HOSTILE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"title": "<img src=x onerror=window.hacked=1>", "description": "<script>window.hacked=1</script> [x](javascript:window.hacked=1)", "tags": ["<b>bold</b>"]}'
  echo '{
    "<b>bold</b>": {"description": "<b>bold</b>", "default_value": "\"><img src=x onerror=window.hacked=1>"},
    "paste": {"description": "Ends a paste, and interrupts.", "default_value": "\u202e\u001b[201~\u0003"}
  }' >&2
  exit
fi
printf '<script>window.hacked=1</script>\n<img src=x onerror="window.hacked=1">\n[a](javascript:window.hacked=1)\n'
printf '<svg onload="window.hacked=1"><b>bold</b>\n\033[31mred\033[0m \033]8;;javascript:window.hacked=1\033\\link\033]8;;\033\\\n'
printf '\342\200\256turned around\342\200\254 zero\342\200\213width\n'
printf 'ERROR <img src=x onerror=window.hacked=1>\nPROGRESS 1/2 <script>window.hacked=1</script>\n' >&2
sleep 1
"#;

const PICTURES: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Sends what is no picture.", "output": "mcp"}'; exit; }
echo '{"content": [
  {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0id2luZG93LmhhY2tlZD0xIi8+"},
  {"type": "image", "mimeType": "text/html", "data": "PHNjcmlwdD53aW5kb3cuaGFja2VkPTE8L3NjcmlwdD4="},
  {"type": "resource_link", "name": "<b>bold</b>", "uri": "javascript:window.hacked=1"},
  {"type": "resource", "resource": {"uri": "javascript:window.hacked=1", "mimeType": "text/html", "text": "<script>window.hacked=1</script>"}}
], "structuredContent": {"<b>bold</b>": "<img src=x onerror=window.hacked=1>", "__proto__": {"hacked": 1}}}'
"#;

const HUGE: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Prints a line of 10 MB."}'; exit; }
head -c 10000000 /dev/zero | tr '\0' x
"#;

const HUGE_LOG: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Logs a line of 10 MB."}'; exit; }
head -c 10000000 /dev/zero | tr '\0' x >&2
echo >&2
"#;

/// Faulty description, with a hidden character.
const FAULTY: &str = r#"#!/bin/sh
echo '{"description": "<script>window.hacked=1</script> \u202e\u001b]8;;javascript:window.hacked=1"}'
"#;

/// Fails with last words.
const LAST_WORDS: &str = r#"#!/bin/sh
# Has no MCPD_VARIABLE.
printf '<img src=x onerror=window.hacked=1>\033[31m\342\200\256\n' >&2
exit 1
"#;

const QUESTIONS: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Asks.", "output": "mcp"}'; exit; }
[ -n "$MCPD_INPUT_RESPONSES" ] && { echo '{"content": []}'; exit; }
echo '{"inputRequests": {"who": {"method": "elicitation/create", "params": {
  "message": "<img src=x onerror=window.hacked=1>\u202e [x](javascript:window.hacked=1)",
  "requestedSchema": {"type": "object", "properties": {
    "<b>bold</b>": {"type": "string", "title": "<b>bold</b>\u202e", "description": "<script>window.hacked=1</script>", "default": "\"><img src=x onerror=window.hacked=1>"},
    "choice": {"type": "string", "enum": ["<b>bold</b>", "\u202eturned"]}
  }}
}}}}'
"#;

const SKILL: &str = r#"---
name: hostile-skill
description: <b>bold</b> <img src=x onerror=window.hacked=1>
license: "<b>bold</b>"
---
# Instructions
"#;

/// Adds all of it to a sandbox.
pub(crate) fn fill(sandbox: Sandbox) -> Sandbox {
    let sandbox = sandbox
        .with_script("hostile", HOSTILE)
        .with_script("pictures", PICTURES)
        .with_script("huge", HUGE)
        .with_script("huge-log", HUGE_LOG)
        .with_script("faulty-bidi", FAULTY)
        .with_script("faulty-words", LAST_WORDS)
        .with_script("questions", QUESTIONS);
    let scripts = sandbox.path().join("scripts");
    let name = "<img src=x onerror=window.hacked=1>\u{202e}.sh";
    fs::write(scripts.join(name), "#!/bin/sh\necho hello\n").unwrap();
    let skill = scripts.join("skills/hostile-skill");
    fs::create_dir_all(skill.join("references")).unwrap();
    fs::write(skill.join("SKILL.md"), SKILL).unwrap();
    let page = "<script>window.hacked=2</script>\n<img src=x onerror=window.hacked=1>\n";
    fs::write(skill.join("references/page.md"), page).unwrap();
    sandbox
}
