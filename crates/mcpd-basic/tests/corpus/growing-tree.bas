' HOSTILE: a list that holds itself twice, again and again.
items = [1]
WHILE TRUE
  items = [items, items]
WEND
