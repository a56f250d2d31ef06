' A name that has no value is a fault, with the one that was probably meant.
total = 1
TALK totl + 1
