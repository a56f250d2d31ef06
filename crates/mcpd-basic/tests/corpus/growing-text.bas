' HOSTILE: a text that is doubled for ever.
t = "x"
WHILE TRUE
  t = t + t
WEND
