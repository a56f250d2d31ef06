' A function is told why it can not change a variable of the program.
items = []
add(1)
SUB add(item)
  PUSH items, item
END SUB
