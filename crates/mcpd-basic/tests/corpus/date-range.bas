' A date beyond the calendar is a fault.
TALK DATEADD(DATE("2026-01-31"), 99999, "years")
