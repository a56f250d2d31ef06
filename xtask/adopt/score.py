"""Compares the options that the reader of help texts finds with those that the programs' own
parsers and completions know, and prints recall and precision for each program and in sum.

    xtask/adopt/setup /tmp/adopt
    cargo build -p mcpd-scriptspec --example read_help
    python3 xtask/adopt/score.py /tmp/adopt target/debug/examples/read_help [NAME...]

An option counts that the parser knows and the help text names anywhere; a hidden one is in no help.
Hand-written completions lack options: one that the file of the program contains is right as well.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
TIME_LIMIT = 60
MIN_RECALL, MIN_PRECISION, MIN_PROGRAMS = 0.95, 0.98, 100
ABOUT_PROGRAM = {"-h", "--help", "-help", "--version", "-V", "--", "-"}


class Machine:
    def __init__(self, corpus):
        self.python = corpus / "venv/bin/python"
        path = [corpus / "venv/bin", corpus / "npm/node_modules/.bin", os.environ["PATH"]]
        self.environment = dict(os.environ, COLUMNS="100", LC_ALL="C.UTF-8", NO_COLOR="1",
                                PATH=":".join(map(str, path)), TERM="dumb")

    def run(self, *command, text=b""):
        try:
            return subprocess.run(command, capture_output=True, env=self.environment, input=text,
                                  timeout=TIME_LIMIT, cwd=HERE)
        except (OSError, subprocess.TimeoutExpired):
            return None

    def path(self, name):
        return shutil.which(name, path=self.environment["PATH"]) or name

    def known(self, compare, program):
        """What the parser knows: pairs of spellings and whether they take a value."""
        kind, words = compare["with"], program.split()
        arguments = [program] if kind in ("git", "openssl", "fish") else words
        if kind in ("getopt", "python", "node"):
            arguments = [self.path(words[0])]
        elif kind == "bash":
            source = [part.format(words[0]) for part in compare["source"]]
            arguments = [program, *source]
        interpreter = self.python if kind == "python" else "python3"
        done = self.run(interpreter, HERE / "tables.py", kind, *arguments)
        return json.loads(done.stdout) if done and done.stdout else []

    def help(self, compare, program):
        words = program.split()
        if compare["with"] in ("git", "openssl"):
            words.insert(0, compare["with"])
        elif compare["with"] == "words":
            words = words[:1]
        done = self.run(*words, *compare["help"])
        return max(done.stdout, done.stderr, key=len) if done else b""


def named(text):
    """Flags that a help text names anywhere."""
    found = set(re.findall(r"(?<![\w-])-{1,2}(?:\[no-\])?[\w.:#?-]*[\w#?]", text))
    return found | {f.replace("[no-]", "") for f in found} | {f.replace("[no-]", "no-") for f in found}


def compare_one(machine, reader, compare, program):
    known = machine.known(compare, program)
    text = machine.help(compare, program)
    if not known or not text:
        return None
    read = json.loads(machine.run(reader, text=text).stdout)
    flags = read["flags"]
    found = {spelling for flag in flags for spelling in flag["spellings"]} - ABOUT_PROGRAM
    negations = {flag["negation"] for flag in flags if flag["negation"]}
    expected = {spelling for spellings, _ in known for spelling in spellings} - ABOUT_PROGRAM
    # Some tables have long options alone.
    if not any(len(spelling) == 2 for spelling in expected):
        found = {spelling for spelling in found if len(spelling) > 2}
    found |= negations & expected
    said = named(text.decode(errors="replace"))
    documented = {spelling for spelling in expected if spelling in said or spelling in found}
    wrong = found - expected
    if compare["with"] == "fish":
        program_file = Path(machine.path(program)).read_bytes()
        wrong = {one for one in wrong if not is_in(program_file, one)}
    has_value = {one: value for spellings, value in known for one in spellings if value is not None}
    values = [one for flag in flags for one in flag["spellings"]
              if one in has_value and has_value[one] != flag["has_value"]]
    return {"missed": sorted(documented - found), "wrong": sorted(wrong), "values": values,
            "documented": len(documented), "found": len(found), "hidden": len(expected - documented),
            "faults": read["faults"]}


def is_in(program, spelling):
    name = spelling.lstrip("-").encode()
    # A short option is a letter in a string of all of them.
    return len(name) == 1 or re.search(rb"[\0-]" + re.escape(name) + rb"[\0=: ,]", program)


def main():
    corpus, reader, *only = sys.argv[1:]
    machine, reader = Machine(Path(corpus).absolute()), Path(reader).absolute()
    tables = tomllib.loads((HERE / "corpus.toml").read_text())["compare"]
    jobs = [(table, program) for table in tables for program in table["programs"]
            if not only or program in only]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: compare_one(machine, reader, *job), jobs)
        scored, skipped = [], []
        for (table, program), result in zip(jobs, results):
            name = f"{table['with']}: {program}"
            if result is None:
                skipped.append(name)
                continue
            scored.append(result)
            hits = result["documented"] - len(result["missed"])
            print(f"{name:40} {hits}/{result['documented']} found, {len(result['wrong'])} wrong")
            for what in ("missed", "wrong", "values", "faults"):
                if result[what]:
                    print(f"    {what}: {' '.join(result[what][:12])}")
    return report(scored, skipped)


def report(scored, skipped):
    total = {key: sum(one[key] for one in scored) for key in ("documented", "found", "hidden")}
    lost = {key: sum(len(one[key]) for one in scored) for key in ("missed", "wrong", "values", "faults")}
    recall = 1 - lost["missed"] / max(1, total["documented"])
    precision = 1 - lost["wrong"] / max(1, total["found"])
    if skipped:
        print(f"skipped, because the program or its parser gave no options: {', '.join(skipped)}")
    print(f"{len(scored)} programs, {total['documented']} options in their help, "
          f"{total['hidden']} hidden ones; {lost['values']} options with or without a value are wrong")
    print(f"recall {recall:.2%}, precision {precision:.2%}, {lost['faults']} faults in drafts")
    meets = (len(scored) >= MIN_PROGRAMS and recall >= MIN_RECALL
             and precision >= MIN_PRECISION and not lost["faults"])
    return 0 if meets else 1


if __name__ == "__main__":
    sys.exit(main())
