' The list of a loop is a list.
FOR EACH c IN "abc"
NEXT
