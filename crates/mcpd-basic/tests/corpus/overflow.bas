' A number with too many digits is a fault.
TALK 10 ^ 28 * 10
