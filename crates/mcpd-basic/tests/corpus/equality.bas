' Values of different kinds are never equal, but NOTHING is an empty text.
TALK 1 = "1", TRUE = 1, NOTHING = "", NOTHING = 0, NOTHING = FALSE, NOTHING = NOTHING
TALK 1.0 = 1, 1 <> "1", DATE("2026-01-31") = "2026-01-31"
