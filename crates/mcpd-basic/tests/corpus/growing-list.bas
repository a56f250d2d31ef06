' HOSTILE: a list that grows for ever.
items = []
WHILE TRUE
  PUSH items, 1
WEND
