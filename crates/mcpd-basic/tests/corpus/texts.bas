' Texts are joined with + and &, and compared by their characters.
TALK "a" + "b" & "c" + 1
TALK 1 & 2
TALK "total: " + 3 * 4
TALK "apple" < "banana", "B" < "a", "a" = "A", "" < "a"
TALK "x" + TRUE + NOTHING + [1]
