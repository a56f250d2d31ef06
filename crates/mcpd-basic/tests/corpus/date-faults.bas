' A date that does not exist is a fault.
TALK "before"
TALK DATE("2026-02-30")
