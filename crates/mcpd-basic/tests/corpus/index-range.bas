' A list has no element beyond its end.
items = [1, 2, 3]
TALK items[2]
TALK items[3]
