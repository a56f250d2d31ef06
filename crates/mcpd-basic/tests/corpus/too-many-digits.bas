' A number of more than 28 digits is not rounded.
TALK VAL("0.12345678901234567890123456789")
