' PRINT and TALK write a line; a comma is a blank, a semicolon nothing.
TALK "a"
PRINT "a", 1, TRUE
PRINT "a"; 1; FALSE
PRINT "no line";
PRINT " ends here"
PRINT
PRINT NOTHING
TALK [1, "two", [TRUE, NOTHING]]
TALK "a ""quoted"" text"
