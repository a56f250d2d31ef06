-- What scripts have said of themselves, by their roots and their paths below them.
CREATE TABLE definitions (
    namespace    TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    -- What must be the same for the definition to hold: the mcpd that read it, and what it saw of the files.
    compiler     TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL,
    -- NULL if the script was asked with --help, and then what it printed; whether it names its own interpreter.
    dialect      TEXT,
    stdout       TEXT,
    stderr       TEXT,
    has_shebang  INTEGER,
    -- SHA-256 of what it said.
    content_hash TEXT    NOT NULL,
    -- Seconds since 1970.
    compiled_at  INTEGER NOT NULL,
    -- JSON.
    metadata     TEXT    NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE INDEX definitions_by_name ON definitions (name);
