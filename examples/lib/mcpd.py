"""Tools for mcpd from decorated functions. One file, Python 3.9 or later, no other packages.

Write `mcpd lib python > mcpd.py` beside your script, and decorate the last function in it:

    #!/usr/bin/env python3
    from mcpd import tool

    @tool
    def greet(name: str, times: int = 1):
        '''Greets someone, several times if need be.'''
        for _ in range(times):
            print(f"Hello, {name}!")

Parameters are the options, with their types and defaults; the docstring is the description, and
its lines `name: text` describe parameters. Without `main` (when it is imported) nothing runs.
"""

import collections.abc
import enum
import inspect
import io
import json
import logging
import os
import re
import sys
import traceback
import types
import typing
from contextlib import redirect_stdout

__all__ = ["Image", "ask", "fail", "progress", "tool", "track"]

CODES = {
    "internal-error": 1,
    "bad-request": 2,
    "forbidden": 3,
    "not-found": 4,
    "service-unavailable": 5,
    "not-acceptable": 6,
    "not-implemented": 7,
    "conflict": 8,
    "timeout": 9,
}
"""Exit codes by name."""

EXCEPTIONS = [
    (FileNotFoundError, "not-found"),
    (PermissionError, "forbidden"),
    (TimeoutError, "timeout"),
    (ConnectionError, "service-unavailable"),
    (NotImplementedError, "not-implemented"),
    (ValueError, "bad-request"),
]
"""Exceptions that are failures of a call and not of the script."""


def fail(message, code="bad-request"):
    """Ends the call with an error. `code` is a name in `CODES`, or a number."""
    sys.stdout.flush()
    _write("ERROR", str(message))
    raise SystemExit(CODES.get(code, code))


def progress(done, total=None, message=""):
    """Reports how much is done, of how much."""
    of = "" if total is None else f"/{total}"
    line = f"PROGRESS {done}{of} {message}".rstrip()
    print(" ".join(line.splitlines()), file=sys.stderr, flush=True)


def track(items, message=""):
    """Iterates over `items` and reports progress after each."""
    total = len(items) if isinstance(items, collections.abc.Sized) else None
    for done, item in enumerate(items, 1):
        yield item
        progress(done, total, message)


class Image:
    """An image to return: a file, or bytes with their type."""

    def __init__(self, path=None, *, data=None, mime_type=None):
        if (path is None) == (data is None):
            raise TypeError("an image has either a path or data")
        self.path, self.data, self.mime_type = path, data, mime_type

    def block(self):
        import base64

        block = {"type": "image"}
        if self.path is not None:
            block["path"] = os.fspath(self.path)
        else:
            block["data"] = base64.b64encode(self.data).decode()
        if self.mime_type:
            block["mimeType"] = self.mime_type
        return block


class ask:
    """Default of a parameter that the person answers before the function runs.

    `def book(table: int, guest: str = ask("Who books the table?"))`
    """

    def __init__(self, message):
        self.message = message


def tool(function=None, **metadata):
    """Makes a function the tool of this script, and runs it if the script is run.

    Keyword arguments are fields of the metadata, such as `title` or `timeout`;
    `read_only`, `destructive`, `idempotent` and `open_world` are annotations.
    """
    if function is None:
        return lambda function: tool(function, **metadata)
    if function.__module__ == "__main__":
        sys.exit(_main(function, metadata))
    return function


def _main(function, metadata):
    options, questions = _parameters(function)
    described = _metadata(function, metadata, bool(questions))
    if sys.argv[1:] == ["--help"]:
        print(json.dumps(described))
        print(json.dumps(options), file=sys.stderr)
        return 0
    _log_to_stderr()
    return _call(function, questions, described.get("output"))


def _call(function, questions, output):
    """Reads the arguments, runs the function and prints its result."""
    text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    given = json.loads(text) if text.strip() else {}
    answers = _answers(questions)
    if questions and answers is None:
        print(json.dumps({"inputRequests": _requests(questions)}))
        return 0
    hints = typing.get_type_hints(function, include_extras=True)
    arguments = {name: _convert(hints.get(name), value) for name, value in given.items()}
    arguments.update(answers or {})
    printed = io.StringIO()
    try:
        with redirect_stdout(printed if output == "mcp" else sys.stdout):
            result = function(**arguments)
            if inspect.iscoroutine(result):
                import asyncio

                result = asyncio.run(result)
    except Exception as error:
        return _report(error)
    if output == "mcp":
        print(json.dumps(_result(printed.getvalue(), result)))
    elif output == "json" or not (result is None or isinstance(result, str)):
        print(json.dumps(result, ensure_ascii=False, default=str))
    elif result is not None:
        print(result)
    sys.stdout.flush()
    return 0


def _report(error):
    """Logs an exception, and returns the exit code for it."""
    for kind, name in EXCEPTIONS:
        if isinstance(error, kind):
            _write("ERROR", str(error) or type(error).__name__)
            return CODES[name]
    traceback.print_exc()
    return CODES["internal-error"]


def _result(printed, result):
    """A result of MCP: printed text, then what the function returned."""
    returned = result if isinstance(result, (list, tuple)) else [result]
    blocks = [printed.rstrip("\n")] if printed.strip() else []
    blocks += [block for block in returned if block is not None]
    blocks = [_block(block) for block in blocks]
    return {"content": blocks or [{"type": "text", "text": "Done."}]}


def _block(value):
    if isinstance(value, Image):
        return value.block()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {"type": "text", "text": text}


def _requests(questions):
    """Questions of MCP, one for each parameter."""
    return {
        name: {
            "method": "elicitation/create",
            "params": {
                "message": message,
                "requestedSchema": {
                    "type": "object",
                    "properties": {name: schema},
                    "required": [name],
                },
            },
        }
        for name, (message, schema) in questions.items()
    }


def _answers(questions):
    """Answers by parameter; `None` if any is missing. A declined one ends the call."""
    file = os.environ.get("MCPD_INPUT_RESPONSES")
    if not questions or not file:
        return None
    with open(file, encoding="utf-8") as responses:
        responses = json.load(responses)
    answers = {}
    for name in questions:
        response = responses.get(name)
        if response is None:
            return None
        if response.get("action") != "accept":
            fail(f"The question about {name} was not answered.", "not-acceptable")
        if name not in response.get("content", {}):
            return None
        answers[name] = response["content"][name]
    return answers


def _metadata(function, metadata, has_questions):
    described = {"description": _documentation(function)[0]}
    annotations = {}
    for name, value in metadata.items():
        is_hint = name in ("read_only", "destructive", "idempotent", "open_world")
        (annotations if is_hint else described)[name] = value
    if annotations:
        described.setdefault("annotations", annotations)
    returned = typing.get_type_hints(function).get("return")
    if has_questions or _holds_image(returned):
        described.setdefault("output", "mcp")
    elif typing.get_origin(returned) in (dict, list) or returned in (dict, list):
        described.setdefault("output", "json")
    return described


def _holds_image(returned):
    return returned is Image or any(map(_holds_image, typing.get_args(returned)))


def _documentation(function):
    """The description, and the texts about parameters by name."""
    names = inspect.signature(function).parameters
    lines, texts, current = [], {}, None
    for line in (inspect.getdoc(function) or "").splitlines():
        found = re.match(r"\s*(?::param\s+)?(\w+)\s*(?:\([^)]*\))?\s*:\s+(.*)", line)
        if found and found[1] in names:
            current = found[1]
            texts[current] = found[2]
        elif current and line.startswith((" ", "\t")) and line.strip():
            texts[current] += " " + line.strip()
        elif line.strip() in ("Args:", "Arguments:", "Parameters:"):
            current = None
        else:
            current = None
            lines.append(line)
    return "\n".join(lines).strip(), texts


def _parameters(function):
    """Options, and the questions behind parameters with `ask`."""
    hints = typing.get_type_hints(function, include_extras=True)
    texts = _documentation(function)[1]
    options, questions = {}, {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"the parameter {name} can't be an option")
        option = _definition(hints.get(name, typing.Any))
        if name in texts:
            option.setdefault("description", texts[name])
        default = parameter.default
        if isinstance(default, ask):
            questions[name] = (default.message, _flat_schema(option))
            continue
        if default is parameter.empty:
            option["required"] = True
        else:
            # `None` says that the option may be absent.
            option["default_value"] = default.value if isinstance(default, enum.Enum) else default
        options[name] = option
    return options, questions


def _definition(hint):
    """The definition of an option of this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        option = _definition(arguments[0])
        for extra in arguments[1:]:
            option.update({"description": extra} if isinstance(extra, str) else extra)
        return option
    if _is_union(origin):
        kinds = [kind for kind in arguments if kind is not type(None)]
        return _definition(kinds[0]) if len(kinds) == 1 else {"value_type": "any"}
    if origin is typing.Literal:
        return {"value_type": {"enum": list(arguments)}}
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"value_type": {"enum": [member.value for member in hint]}}
    kinds = {
        str: "string",
        int: "integer",
        float: "float",
        bool: "boolean",
        list: "array",
        dict: "object",
    }
    if inspect.isclass(hint) and issubclass(hint, os.PathLike):
        return {"value_type": "string"}
    option = {"value_type": kinds.get(origin or hint, "any")}
    if option["value_type"] == "array" and arguments:
        option["items"] = _definition(arguments[0])
    return option


def _is_union(origin):
    return origin is typing.Union or origin is getattr(types, "UnionType", typing.Union)


def _convert(hint, value):
    """Converts a value to an enum or a path, if its parameter is one."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return None
    if origin is typing.Annotated or _is_union(origin):
        kinds = [kind for kind in arguments if kind is not type(None)]
        return _convert(kinds[0], value) if origin is typing.Annotated or len(kinds) == 1 else value
    if inspect.isclass(hint) and issubclass(hint, (enum.Enum, os.PathLike)):
        return hint(value)
    if origin is list and arguments:
        return [_convert(arguments[0], element) for element in value]
    return float(value) if hint is float else value


def _flat_schema(option):
    """JSON Schema of a question, which has one flat field."""
    kind = option["value_type"]
    if isinstance(kind, dict):
        schema = {"type": "string", "enum": kind["enum"]}
    else:
        kinds = {"integer": "integer", "float": "number", "boolean": "boolean"}
        schema = {"type": kinds.get(kind, "string")}
    if "description" in option:
        schema["description"] = option["description"]
    return schema


def _write(level, text):
    for line in text.splitlines() or [""]:
        print(f"{level} {line}", file=sys.stderr, flush=True)


class _Handler(logging.Handler):
    """Writes records of `logging` as log lines of mcpd."""

    def emit(self, record):
        level = "ERROR" if record.levelno >= logging.ERROR else record.levelname
        known = level in ("ERROR", "WARNING", "INFO", "DEBUG")
        _write(level if known else "DEBUG", self.format(record))


def _log_to_stderr():
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.DEBUG, format="%(message)s", handlers=[_Handler()])
