' END and STOP end the program wherever they are.
TALK leave()
TALK "never"
FUNCTION leave()
  FOR i = 1 TO 3
    TALK i
    IF i = 2 THEN END
  NEXT
END FUNCTION
