' HOSTILE: lists within lists.
items = []
WHILE TRUE
  items = [items]
WEND
