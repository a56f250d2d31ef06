' A block without an end is reported where it begins.
FUNCTION f(a)
  IF a THEN
    RETURN 1
  END IF
TALK f(1)
