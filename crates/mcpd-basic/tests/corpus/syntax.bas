' Each faulty line is reported, once.
TALK "not closed
TALK (1 + 2
TALK 1 +
LET = 5
x == 5
IF x != 5 THEN TALK "a"
TLAK "b"
x + 1
FOR i = 1 2
  TALK i
NEXT
WHILE
WEND
IF x THEN TALK THEN
TALK [1, 2
TALK 1 2
TALK a.5
EXIT SUB
TALK "a": TALK "b"
TALK §
IF (x = 1) {
RETURN 5
TALK 1 + NOT 2
