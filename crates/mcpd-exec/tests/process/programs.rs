//! Ordinary programs run confined as they do unconfined, with a directory to write to.

use std::fs;

use mcpd_exec::{Outcome, Sandbox};

use crate::support::{World, levels, skip};

/// Runs a bash script at each level, and compares its output; `program` must be installed.
async fn check(program: &str, body: &str, expected: &str) {
    let script = format!("#!/usr/bin/env bash\nset -eu\nexport HOME=$PWD\ncd work\n{body}\n");
    for level in levels().await {
        let world = World::new();
        let work = world.directory().join("work");
        fs::create_dir(&work).unwrap();
        let run = async |script: &str| {
            let command = world.command(world.file(script, 0o755));
            world.run_in(Sandbox::at(level).write(&work), command).await
        };
        let version: Outcome = run(&format!("#!/bin/sh\n{program} >/dev/null 2>&1\n")).await;
        if !version.success() {
            return skip(&format!("`{program}` does not run here, at {level}"));
        }
        let outcome = run(&script).await;
        assert_eq!(
            outcome.stdout.to_text_lossy(),
            expected,
            "at {level}: {outcome:?}"
        );
        assert!(outcome.success(), "at {level}: {outcome:?}");
    }
}

#[tokio::test]
async fn shell_pipelines_run_confined() {
    check("bash --version", "cat <<X | tr a-z A-Z\nhello\nX\ncat <(echo sub); timeout 5 echo ok; echo err > /dev/stderr; cat /dev/stdin", "HELLO\nsub\nok\n").await;
    check("bash --version", "x=$(head -c 200000 /dev/zero | tr '\\0' x); cat <<X | wc -c\n$x\nX\necho x > a; mv a b; cat < b; find . | sort", "200001\nx\n.\n./b\n").await;
    check("xargs --version", "seq 20 | xargs -P 4 -n 1 echo | sort -n | tail -1; seq 3 | (while read x; do echo $x & done; wait) | wc -l", "20\n3\n").await;
    check("bash --version", "set -m; sleep 300 & kill %1; wait %1 || echo $?; (trap 'echo term' TERM; kill -TERM $BASHPID); flock f echo locked; nice echo nice", "143\nterm\nlocked\nnice\n").await;
}

#[tokio::test]
async fn terminal_programs_run_confined() {
    check(
        "script --version",
        "script -qec 'tty > t; test -t 0 && echo yes' /dev/null | tr -d '\\r'; grep -c ^/dev/pts t",
        "yes\n1\n",
    )
    .await;
}

#[tokio::test]
async fn python_runs_confined() {
    let body = r#"python3 - <<'X'
import json, multiprocessing, os, pty, subprocess, tempfile, threading
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(square, [1, 2, 3]))
    print(subprocess.run(["echo", "sub"], capture_output=True, start_new_session=True, text=True).stdout.strip())
    with tempfile.NamedTemporaryFile() as f: print(os.path.exists(f.name))
    t = threading.Thread(target=print, args=["thread"]); t.start(); t.join()
    open("state.json", "w").write(json.dumps({"n": 1})); os.rename("state.json", "s"); print(open("s").read())
X"#;
    check(
        "python3 --version",
        body,
        "[1, 4, 9]\nsub\nTrue\nthread\n{\"n\": 1}\n",
    )
    .await;
}

#[tokio::test]
async fn node_runs_confined() {
    let body = r#"node -e '
const { execFile } = require("child_process"), fs = require("fs/promises"), { Worker } = require("worker_threads");
(async () => {
    await fs.writeFile("f", "file"); console.log(await fs.readFile("f", "utf8"));
    await new Promise((done) => execFile("echo", ["child"], (_, out) => { process.stdout.write(out); done() }));
    await new Promise((done) => new Worker("console.log(\"worker\")", { eval: true }).on("exit", done));
})()'"#;
    check("node --version", body, "file\nchild\nworker\n").await;
}

#[tokio::test]
async fn java_runs_confined() {
    let body = r#"cat > Hello.java <<'X'
class Hello {
    public static void main(String[] args) throws Exception {
        var thread = new Thread(() -> System.out.println("thread")); thread.start(); thread.join();
        java.nio.file.Files.writeString(java.nio.file.Path.of("f"), "x");
        System.out.println(new ProcessBuilder("cat", "f").start().inputReader().readLine());
    }
}
X
java -Xmx128m Hello.java"#;
    check("javac --version", body, "thread\nx\n").await;
}

#[tokio::test]
async fn git_runs_confined() {
    let body = "git init -q . && git config user.name n && git config user.email e && echo x > f && git add f && git commit -qm first && git checkout -qb other && git gc -q && git log --format=%s";
    check("git --version", body, "first\n").await;
}

#[tokio::test]
async fn make_runs_confined() {
    let body = "printf 'all: a b\\na b:\\n\\t@echo $@ > $@; sleep 0.01\\n' > Makefile; make -j2 -s; cat a b";
    check("make --version", body, "a\nb\n").await;
    let body = "printf 'int main(void) { return 42; }' > x.c; cc x.c -o x; ./x || echo $?";
    check("cc --version", body, "42\n").await;
}
