' Every kind of comment, and keywords in any case.
REM a remark
rem another
# one more
// and one
talk "a" ' after a statement
Talk "b" # likewise
TALK "c # no comment // here ' nor here" // but here
remark = 1
TALK remark
