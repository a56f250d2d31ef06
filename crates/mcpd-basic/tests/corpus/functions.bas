' FUNCTION and SUB, called before they are defined and by themselves.
' parameters: {"place": "London"}
TALK double(4), fact(10)
greet("Ada")
CALL greet("Grace")
TALK nothing_comes_back()
FUNCTION double(n)
  RETURN n * 2
END FUNCTION
function Fact(n)
  IF n <= 1 THEN RETURN 1
  RETURN n * fact(n - 1)
end function
SUB greet(who)
  IF who = "Grace" THEN
    TALK "Good morning"
    RETURN
  END IF
  TALK "Hello, " + who + " of " + place
  EXIT SUB
  TALK "never"
END SUB
FUNCTION nothing_comes_back()
END FUNCTION
