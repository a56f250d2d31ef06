' HOSTILE: a loop with very many turns.
FOR i = 1 TO 10 ^ 27
NEXT
