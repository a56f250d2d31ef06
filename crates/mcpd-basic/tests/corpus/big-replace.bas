' HOSTILE: a replacement that would fill all memory.
t = "x"
FOR i = 1 TO 15
  t = t + t
NEXT
TALK LEN(t)
t = REPLACE(t, "x", t)
