' So are calls with too few or too many arguments.
TALK LEFT("a")
TALK TODAY(1)
TALK MIN()
TALK ROUND(1, 2, 3)
TALK twice(1, 2)
FUNCTION twice(n)
  RETURN n * 2
END FUNCTION
