' ERROR ends the program with a message of its own.
' parameters: {"amount": -5}
TALK "so far"
IF amount < 0 THEN ERROR "an amount must not be negative: " + amount
TALK "never"
