' A negative number has no root.
TALK SQRT(-1)
