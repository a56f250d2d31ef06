' FOR counts up and down, with any step; the bounds are computed once.
FOR i = 1 TO 3
  TALK i
NEXT i
FOR i = 3 TO 1 STEP -1
  TALK i;
NEXT
TALK
FOR x = 0 TO 1 STEP 0.25
  PRINT x;
  PRINT " ";
NEXT
TALK
FOR i = 5 TO 1
  TALK "never"
NEXT
n = 2
FOR i = 1 TO n
  n = 10
NEXT
TALK i
