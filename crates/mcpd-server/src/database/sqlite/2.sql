-- Calls that run in the background, and what came of them.
CREATE TABLE tasks (
    id         TEXT    NOT NULL PRIMARY KEY,
    -- Who may know of it.
    owner      TEXT    NOT NULL,
    -- The path of the tool.
    tool       TEXT    NOT NULL,
    -- The server that runs it.
    runner     TEXT    NOT NULL,
    -- As MCP has it.
    status     TEXT    NOT NULL,
    -- JSON: the questions that are open, the result or the error.
    detail     TEXT,
    -- What its owner wants of it: JSON of the answers so far, and whether it shall end.
    answers    TEXT,
    cancel     INTEGER NOT NULL DEFAULT FALSE,
    -- Milliseconds since 1970.
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

CREATE INDEX tasks_by_owner ON tasks (owner, created_at);
CREATE INDEX tasks_by_runner ON tasks (runner);
CREATE INDEX tasks_by_expiry ON tasks (expires_at);
