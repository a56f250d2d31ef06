' What opens a block needs its end, and the other way round.
NEXT
WHILE TRUE
  IF x THEN
    TALK 1
WEND
END IF
FOR i = 1 TO 2
  FOR j = 1 TO 2
  NEXT i
NEXT j
EXIT FOR
FUNCTION a()
  SUB b()
  END SUB
END FUNCTION
FUNCTION a()
END FUNCTION
FUNCTION len(x)
END FUNCTION
SUB c(x, x)
END SUB
IF 1 THEN
ELSE
ELSE
END IF
FOR i = 1 TO 3
