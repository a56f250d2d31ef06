' Lines may end as on Windows.
TALK "a"
IF TRUE THEN
  TALK "b"
END IF
TALK 1 / 0
