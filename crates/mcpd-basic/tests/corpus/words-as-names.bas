' Keywords are names wherever a statement does not begin with them.
' parameters: {"to": "ada@example.org", "end": "2026-01-31", "next": "n"}
PARAM to AS email
PARAM end AS date
PARAM next AS string
TALK "from " + end + " to " + to
next = next + "!"
TALK next
LET print = 3
print = print + 1
FOR step = print TO 5 STEP 1
  TALK step
NEXT step
FOR EACH each IN [to]
  TALK each
NEXT
if = TRUE
IF if THEN TALK "if"
