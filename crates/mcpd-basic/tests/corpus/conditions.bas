' IF in all its forms.
FOR n = 1 TO 5
  IF n = 1 THEN
    TALK "one"
  ELSEIF n = 2 THEN
    TALK "two"
  ELSE IF n = 3 THEN
    TALK "three"
  ELSE
    TALK "many"
  END IF
NEXT
IF TRUE THEN TALK "yes" ELSE TALK "no"
IF FALSE THEN TALK "yes" ELSE TALK "no"
IF FALSE THEN TALK "never"
IF TRUE THEN IF FALSE THEN TALK "a" ELSE TALK "b"
IF 1 THEN
  IF NOTHING THEN
    TALK "never"
  ENDIF
ENDIF
IF 0 THEN x = 1 ELSE x = 2
TALK x
