' HOSTILE: a function that calls itself for ever.
TALK f(1)
FUNCTION f(n)
  RETURN f(n + 1)
END FUNCTION
