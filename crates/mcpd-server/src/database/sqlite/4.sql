-- What must be the same beside the file: what runs it, and how it is asked. Those that are there are asked once more.
DELETE FROM definitions;
ALTER TABLE definitions ADD COLUMN conditions TEXT NOT NULL DEFAULT '';

-- What files have answered that describes nothing.
CREATE TABLE refusals (
    namespace   TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    compiler    TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    conditions  TEXT    NOT NULL,
    shebang     TEXT,
    -- no-tool, fault, time-out or text
    kind        TEXT    NOT NULL,
    -- Of what is no tool, why.
    reason      TEXT,
    -- Of a fault and a time-out, the diagnostic.
    code        TEXT,
    message     TEXT,
    help        TEXT,
    time_outs   INTEGER NOT NULL DEFAULT 0,
    -- Of a text, the two outputs.
    stdout      BLOB,
    stderr      BLOB,
    PRIMARY KEY (namespace, name)
);
