' AND binds before OR, NOT before AND; what does not matter is not looked at.
TALK TRUE OR FALSE AND FALSE, NOT TRUE OR TRUE, NOT (TRUE OR TRUE), NOT 1 = 2
TALK 1 < 2 AND 2 <= 2 AND 3 > 2 AND 3 >= 3 AND 1 <> 2
items = []
IF LEN(items) > 0 AND items[0] = 1 THEN TALK "never" ELSE TALK "short"
IF TRUE OR 1 / 0 = 1 THEN TALK "cut"
TALK NOT NOT 5
