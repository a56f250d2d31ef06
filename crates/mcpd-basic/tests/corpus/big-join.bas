' HOSTILE: a separator that would fill all memory.
t = "x"
FOR i = 1 TO 15
  t = t + t
NEXT
t = JOIN(SPLIT(LEFT(t, 10000), "x"), t)
