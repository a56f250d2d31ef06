' Numbers are as they were given, to the last digit, and tiny powers are nothing.
' parameters: {"n": 0.1234567890123456789, "big": 12345678901234567890123, "in": [{"x": 12345678901.123456789, "e": 1.50e3}]}
PARAM n AS number LIKE 1 DESCRIPTION "A number"
PARAM big AS integer LIKE 1 DESCRIPTION "A number"
PARAM in AS array LIKE [] DESCRIPTION "Numbers"
TALK n, big, in
TALK n + 0
TALK 2 ^ -100, 0.5 ^ 1000.5, 3 ^ -1000.25, (-1) ^ 3, 4 ^ 0.5
TALK VAL("0.10000000000000000000000000000000"), VAL("1e3"), VAL("0e99")
