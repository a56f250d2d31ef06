' The name of a parameter is a word.
PARAM 1x AS string DESCRIPTION "a"
PARAM "x" AS string
PARAM
PARAM ' nothing
