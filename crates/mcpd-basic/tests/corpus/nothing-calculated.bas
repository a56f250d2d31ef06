' A parameter that was not given can not be calculated with.
PARAM amount AS number OPTIONAL
TALK amount + 1
