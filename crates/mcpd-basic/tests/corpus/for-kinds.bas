' The bounds of a loop are numbers, its list a list.
FOR i = 1 TO "3"
NEXT
