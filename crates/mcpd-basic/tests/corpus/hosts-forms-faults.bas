TALK "Hi ${}"
TALK "Hi ${1 +}"
TALK "Hi ${nobody()}"
x = {1: 2}
y = {"a" 2}
IF x IS 5 THEN TALK x
TALK 1 { 2
