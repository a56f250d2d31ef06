' A count must be a whole number that makes sense.
TALK MID("abc", 0)
