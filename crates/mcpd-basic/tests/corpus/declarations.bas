' What a program declares is not run, and a parameter that was not given is NOTHING.
' parameters: {"Customer": "Grace", "amount": 12.50}
PARAM customer AS string LIKE "Ada" DESCRIPTION "Who orders"
PARAM amount AS number LIKE 99.99 DESCRIPTION "How much" OPTIONAL MIN 0
PARAM note AS string DESCRIPTION "not closed
DESCRIPTION "Places an order"
TALK customer + ", " + amount
IF note = "" THEN TALK "no note"
IF ISEMPTY(note) THEN TALK "still none"
TALK "[" + note + "]"
description = "a name like any other"
TALK description
