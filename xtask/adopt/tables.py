"""Options that a program's own parser or completions know, as JSON: pairs of spellings and whether
the option takes a value (null where the source does not say)."""

import json
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def getopt(program):
    """The arrays of `struct option` in an ELF file, of 32 bytes each: name, has_arg, flag, val."""
    data = Path(program).read_bytes()
    sections = read_sections(data)
    pointers = {}
    for name, kind, address, offset, size in sections:
        if kind == 4:  # SHT_RELA
            for at in range(offset, offset + size, 24):
                where, info, addend = struct.unpack_from("<QQq", data, at)
                if info & 0xFFFFFFFF == 8:  # R_X86_64_RELATIVE
                    pointers[where] = addend

    def locate(address):
        for _, kind, start, offset, size in sections:
            if kind != 8 and start and start <= address < start + size:
                return offset + address - start

    def text(address):
        at = locate(address)
        if at is None:
            return ""
        return data[at : data.index(b"\0", at)].decode("latin-1")

    def entry(where):
        at = locate(where)
        if where not in pointers or at is None:
            return None
        (has_value,) = struct.unpack_from("<i", data, at + 8)
        name = text(pointers[where])
        # A name with a dash of its own is of a flag for the program's tests.
        is_name = re.fullmatch(r"-?[A-Za-z0-9][A-Za-z0-9_.+-]*", name)
        # The pointer to a flag is null, or points to memory that the program writes to.
        is_flag = where + 16 not in pointers or locate(pointers[where + 16]) is None
        return (name, has_value) if is_name and is_flag and has_value in (0, 1, 2) else None

    found = {}
    for where in sorted(pointers):
        run = []
        at = where
        while one := entry(at):
            run.append(one)
            at += 32
        end = locate(at)
        ends = end is not None and at not in pointers and data[end : end + 32] == bytes(32)
        if ends and len(run) >= 2:
            found.update(run)
    return [[[f"--{name}"], bool(value)] for name, value in found.items() if name[0] != "-"]


def read_sections(data):
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, _ = struct.unpack_from("<HHH", data, 0x3A)
    sections = []
    for number in range(count):
        at = start + number * size
        name, kind, _, address, offset, length = struct.unpack_from("<IIQQQQ", data, at)
        sections.append((name, kind, address, offset, length))
    return sections


def bash(words, *source):
    """The words of a program or its sub-command in completions that clap generates."""
    text = Path(source[0]).read_text() if len(source) == 1 else output(*source)
    program, *commands = words.split()
    label = "__".join([program.replace("-", "__"), *commands])
    subcommand = "__subcmd__".join([program.replace("-", "__"), *commands])
    found = None
    for name in (label, subcommand, label.replace("-", "__"), subcommand.replace("-", "__")):
        found = found or re.search(rf'(?m)^\s*{re.escape(name)}\)\s*opts="([^"]*)"', text)
    if not found:
        return []
    return [[[word], None] for word in found[1].split() if word.startswith("-")]


def fish(program):
    """Completions of fish without conditions."""
    text = Path(f"/usr/share/fish/completions/{program}.fish").read_text()
    flags = []
    for line in text.splitlines():
        if not line.startswith("complete") or re.search(r"\s(-n|--condition)\s", line):
            continue
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        spellings = []
        for word, value in zip(words, words[1:]):
            prefix = {"-s": "-", "-o": "-", "-l": "--", "--short-option": "-", "--long-option": "--"}.get(word)
            if prefix and "$" not in value:
                spellings.append(prefix + value)
        if spellings:
            flags.append([spellings, None])
    return flags


def git(command):
    """What git says to the completions of its shell."""
    words = output("git", command, "--git-completion-helper-all").split()
    words = [word for word in words if word != "--"]
    return [[[word.rstrip("=")], word.endswith("=") or None] for word in words]


def openssl(command):
    """The table of options of a command, with the type of each value."""
    lines = output("openssl", "list", "-options", command).splitlines()
    pairs = [line.split() for line in lines if line.strip()]
    pairs = [(pair + ["-"])[:2] for pair in pairs]
    return [[[f"-{name}"], kind != "-"] for name, kind in pairs if name not in "*-"]


def words(*command):
    """Every flag in the completions that a program prints of itself."""
    found = re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", output(*command))
    return [[[word], None] for word in dict.fromkeys(found)]


def python(*program):
    return introspect(sys.executable, str(Path(__file__).with_name("parsers.py")), *program)


def node(*program):
    hook = str(Path(__file__).with_name("parsers.cjs"))
    return introspect("node", "--require", hook, *program)


def introspect(*command):
    """Runs a program with `--help` under a hook, which writes to descriptor 3."""
    script = 'exec 3>&1 >/dev/null 2>&1; exec "$@" --help'
    done = subprocess.run(["sh", "-c", script, "sh", *command], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60)
    return json.loads(done.stdout) if done.stdout else []


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
