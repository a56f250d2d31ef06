' A number is written without separators.
TALK VAL("1_000")
