' A function reads the variables of the program, and assigns its own.
count = 1
items = [1]
change()
TALK count, items
SUB change()
  TALK count
  count = 5
  TALK count
  items = APPEND(items, 2)
  TALK items
END SUB
