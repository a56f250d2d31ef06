' A variable that nothing is assigned to is found before it is read.
' parameters: {"n": 0}
PARAM n AS number DESCRIPTION "How many"
IF n > 0 THEN
  TALK totl
END IF
total = 1
FOR i = 1 TO 2
  PUSH itms, i + totl
NEXT
FOR EACH word IN words
  TALK word
NEXT
items = []
SUB greet(name)
  elements[0] = name
END SUB
