' A function says what it needs, and what it got.
TALK LEFT(5, 2)
