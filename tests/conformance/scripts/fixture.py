"""What the Python fixtures have in common. It is not executable, and so not a script itself."""

import json
import os
import sys


def describe(description, options=None, **metadata):
    """Answers `--help`, which ends the script."""
    if "--help" in sys.argv[1:]:
        print(json.dumps({"description": description, "output": "mcp", **metadata}))
        print(json.dumps(options or {}), file=sys.stderr)
        sys.exit()


def arguments():
    return json.load(sys.stdin)


def context():
    """Who calls, for a script that declares `context`."""
    return _file("MCPD_CONTEXT")


def answers():
    """What the client answered so far, by the key of the question."""
    return _file("MCPD_INPUT_RESPONSES") or {}


def state():
    """What the script gave to `ask` the last time."""
    return _file("MCPD_REQUEST_STATE")


def ask(questions, state=None):
    """Asks the client and ends; the script runs again with its answers."""
    finish(inputRequests=questions, **({} if state is None else {"requestState": state}))


def say(text):
    """Ends with one text."""
    finish(content=[{"type": "text", "text": text}])


def finish(**result):
    print(json.dumps(result))
    sys.exit()


def elicitation(message, **properties):
    """A form in which every field is required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(prompt, max_tokens=100):
    messages = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": max_tokens}}


ROOTS = {"method": "roots/list", "params": {}}


def _file(variable):
    path = os.environ.get(variable)
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)
