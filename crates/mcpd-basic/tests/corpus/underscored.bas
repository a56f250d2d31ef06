' An underscore is in no number.
TALK VAL("1_000")
