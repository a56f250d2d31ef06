//! Results of the parser for ordinary commands, and for those crafted to be misread.

use super::*;

mod agreement;

/// Formats the commands in brackets, with a question mark before unknown words.
fn format_parsed(parsed: &Parsed) -> String {
    let word = |word: &Word| match word {
        Word::Known(word) => word.clone(),
        Word::Unknown(word) => format!("?{word}"),
    };
    let command = |command: &Vec<Word>| {
        let words: Vec<_> = command.iter().map(word).collect();
        format!("[{}]", words.join("|"))
    };
    parsed.commands.iter().map(command).collect()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let parsed = parse(text).unwrap();
    assert_eq!(format_parsed(&parsed), expected, "{text}");
    assert_eq!(parsed.doubt, None, "{text}");
}

#[track_caller]
fn check_doubt(text: &str, expected: &str, doubt: &str) {
    let parsed = parse(text).unwrap();
    assert_eq!(format_parsed(&parsed), expected, "{text}");
    assert_eq!(parsed.doubt, Some(doubt), "{text}");
}

#[test]
fn parser_finds_every_command_of_pipelines_and_lists() {
    check("git log", "[git|log]");
    check("a|b||c&&d;e&f\ng", "[a][b][c][d][e][f][g]");
    check("(a; b) && { c; }", "[a][b][c]");
    check(
        "if a; then b; elif c; then d; else e; fi",
        "[a][b][c][d][e]",
    );
    check("! a; while b; do c; done", "[a][b][c]");
    check("a # b; c\nd#e", "[a][d#e]");
    check("a \\\n b", "[a|b]");
    check("", "");
}

#[test]
fn words_are_unquoted_like_in_the_shell() {
    check(r#"'r'm "a b" c\ d \"e"#, r#"[rm|a b|c d|"e]"#);
    check(r#"echo "a\b \$x" '$x `y`' a$"#, r"[echo|a\b $x|$x `y`|a$]");
    check(
        "echo $x \"$x\" ${x} *.txt ~",
        "[echo|?$x|?$x|?${x}|?*.txt|?~]",
    );
    check(
        "find . -exec a {} ';' | [ b ]",
        "[find|.|-exec|a|{}|;][[|b|]]",
    );
    check("$x a", "[?$x|a]");
    check("'if' a", "[?if|a]");
}

#[test]
fn redirections_are_no_words() {
    check("a 2>&1 >b c < d 3>e>>f", "[a|c]");
    check("a &>b", "[a]");
}

#[test]
fn doubtful_constructs_are_reported() {
    check_doubt("a $(b; c) d", "[b][c][a|?$(…)|d]", "a substitution");
    check_doubt("a \"x`b c`y\"", "[b|c][a|?x`…`y]", "a substitution");
    check_doubt("a <(b)", "[b][a]", "a substitution");
    check_doubt("a > $(b)", "[b][a]", "a substitution");
    check_doubt(
        "a ${x:-$(b)}",
        "[b][a|?${x:-$(…)}]",
        "an expansion that is more than a name",
    );
    check_doubt("eval a 'b; c'", "[a|b][c][eval|a|b; c]", "`eval` or `trap`");
    check_doubt("trap 'a b' X", "[a|b][trap|a b|X]", "`eval` or `trap`");
    check_doubt(
        "time eval $a b",
        "[?$a b][time|eval|?$a|b]",
        "`eval` or `trap`",
    );
    check_doubt("X=1 a", "[a]", "an assignment");
    check_doubt("X=$(b)", "[b]", "a substitution");
    check_doubt(
        "for x in a b; do c; done",
        "[c]",
        "`for`, `case` or the like",
    );
    check_doubt("case x in a) b;; esac", "[b]", "`for`, `case` or the like");
    check_doubt("f() { a; }; f", "[f][a][f]", "the definition of a function");
    check_doubt("a $'b'", "[a|?$b]", "`$` before a quote");
    check_doubt("a <<E; b\nrm c\nE\nd", "[a][b][d]", "a here-document");
}

#[test]
fn invalid_command_is_rejected() {
    for text in ["a 'b", "a \"b", "a $(b", "a `b", "(a", "a ${b", "a $((b"] {
        assert!(parse(text).is_err(), "{text}");
    }
    for deep in ["$(", "( ", "${", "$((${", "\"$("] {
        let parsed = parse(&deep.repeat(100_000));
        assert_eq!(parsed, Err("nested too deeply"), "{deep}");
    }
}

#[test]
fn lines_are_joined_where_the_shell_joins_them() {
    check("a\\\nb \"c\\\nd\" 'e\\\nf'", "[ab|cd|e\\\nf]");
    check("a &\\\n& b >\\\n& c", "[a][b]");
    check("a \\\\\nb", "[a|\\][b]");
    check("a # b \\\nc", "[a][c]");
    check("a 'b\\\\\nc' d", "[a|b\\\\\nc|d]");
}

#[test]
fn redirections_take_one_word_and_no_more() {
    check("a >&- b", "[a|b]");
    check("3>&- a 3<&- b", "[a|b]");
    check("a >&-|b", "[a][b]");
    check("a >- b", "[a|b]");
    check("a >| b <> c <<<d e", "[a|e]");
    check("a '2'>b", "[a|2]");
}

#[test]
fn parser_finds_commands_in_constructs() {
    let doubt = "`for`, `case` or the like";
    check_doubt("for x do a; done", "[a]", doubt);
    check_doubt("function f { a b; }; f", "[a|b][f]", doubt);
    check_doubt("case x in y) a;; *) b;; esac; c", "[a][b][c]", doubt);
    check_doubt("case x in y)\na;;\n(*)\nb;;\nesac", "[a][?*][b]", doubt);
    assert!(parse("a $(case x in x) b;; esac)").is_err());
}

#[test]
fn parser_finds_commands_behind_builtins() {
    let started = |text: &str| {
        let parsed = parse(text).unwrap();
        let words =
            |command: &Vec<Word>| command.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        parsed
            .indirect_commands
            .iter()
            .map(words)
            .collect::<Vec<_>>()
    };
    assert_eq!(started("time -p a b | command c"), ["a b", "c"]);
    assert_eq!(
        started("time command -- ! A=1 a"),
        ["a", "command -- ! A=1 a"]
    );
    assert_eq!(started("time -$x a"), ["-$x a"]);
    assert_eq!(started("exec >a; command -v b; time"), [""; 0]);
    let deep = "time ".repeat(100_000);
    assert_eq!(parse(&format!("{deep} a")), Err("nested too deeply"));
}

#[test]
fn words_that_differ_between_shells_are_rejected() {
    for text in ["alias a=b", "coproc a", "time alias", "eval 'coproc a'"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn here_documents_end_at_their_last_line() {
    let doubt = "a here-document";
    check_doubt("a <<E\n\tE\n'\nE\nb #'", "[a][b]", doubt);
    check_doubt("a <<-E\n\tE\nb", "[a][b]", doubt);
    check_doubt("a <<'E'\nx\\\nE\nb", "[a][b]", doubt);
    check_doubt("a <<E\nx\\\nE\nE\nb", "[a][b]", doubt);
    check_doubt("a <<E\nit's $(b) \\$(c) `d`\nE", "[a][b][d]", doubt);
    check_doubt("a <<'E'\n$(b)\nE", "[a]", doubt);
    for text in [
        "a <<$(b)\nc",
        "a $(b <<E)\nc",
        "a <<E $(b\nE\n)",
        "(a <<E)\nb\nE",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn substitutions_are_parsed_like_in_the_shell() {
    let doubt = "a substitution";
    check_doubt("a `b \\`c\\``", "[c][b|?`…`][a|?`…`]", doubt);
    check_doubt("a `#`; b", "[a|?`…`][b]", doubt);
    check_doubt("a $((1<<2))\nb\n2", "[a|?$(…)][b][2]", doubt);
    check_doubt("a $(( (1+2) * $(b) ))", "[b][a|?$(…)$(…)]", doubt);
    check_doubt(
        "a ${x:-\\'}; b #'}",
        "[a|?${x:-\\'}][b]",
        "an expansion that is more than a name",
    );
    check("a \"b$\"", "[a|b$]");
}

#[test]
fn constructs_that_differ_between_shells_are_rejected() {
    for text in [
        "((a))",
        "a $((b) | c)",
        "a \"${x:-'}\"; b; \"'}\"",
        "a $'\\''; b #'",
        "a $[1<<2]\nb",
        "3>&-a b",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn bracket_that_one_shell_closes_elsewhere_is_rejected() {
    for text in [
        // Dash runs `b`: `$$(` is a text in quotes. Bash reads on to the bracket.
        "a \"$$(\"; b; a \")\"",
        "a \"$$(b)\"",
        "a $${b}",
        // Bash runs `b`: the bracket closes in the quotes after it.
        "a \"$[ 1 + \"; : ' \" 1 ]\"\nb #'",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    check("a $$ \"$$\" \\$$ $$b", "[a|?$$|?$$|$$|?$$b]");
}
