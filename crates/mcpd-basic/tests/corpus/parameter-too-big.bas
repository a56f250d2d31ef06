' A number that no program can compute with is refused.
' parameters: {"n": 1e300}
TALK n
