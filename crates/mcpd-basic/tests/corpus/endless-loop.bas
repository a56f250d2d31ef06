' HOSTILE: a loop without end.
TALK "begins"
WHILE TRUE
WEND
