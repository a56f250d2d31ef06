' A loop that never moves is a fault.
FOR i = 1 TO 2 STEP 0
NEXT
