' WHILE, and leaving loops.
n = 3
WHILE n > 0
  TALK n
  n = n - 1
END WHILE
WHILE TRUE
  FOR i = 1 TO 10
    IF i = 3 THEN EXIT FOR
    IF i = 2 THEN EXIT WHILE
  NEXT
WEND
TALK "left at", i
FOR EACH i IN [1, 2, 3]
  IF i = 2 THEN
    EXIT FOR
  END IF
NEXT
TALK i
