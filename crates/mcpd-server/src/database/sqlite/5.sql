-- Versions of interpreters, by their programs.
CREATE TABLE versions (
    program     TEXT    NOT NULL PRIMARY KEY,
    fingerprint TEXT    NOT NULL,
    major       INTEGER NOT NULL,
    minor       INTEGER NOT NULL
);
