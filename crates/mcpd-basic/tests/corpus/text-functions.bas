' Functions of texts count characters, from 1.
TALK LEN("größe"), UCASE("größe"), LCASE("GRÖSSE"), "[" + TRIM("  a b ") + "]"
TALK LEFT("größe", 3), RIGHT("größe", 3), MID("größe", 2, 2), MID("größe", 3), LEFT("ab", 10), MID("ab", 5)
TALK INSTR("größe", "ß"), INSTR("abc", "x"), INSTR("abc", "")
TALK REPLACE("a-b-c", "-", "+"), CONTAINS("hello", "ell"), CONTAINS("hello", "x")
TALK SPLIT("a, b, c", ", "), JOIN(["a", 1, TRUE], "-")
TALK ASC("A"), CHR(8364), left$("dollar", 2)
name$ = "with a dollar"
TALK NAME, LEN(NOTHING)
