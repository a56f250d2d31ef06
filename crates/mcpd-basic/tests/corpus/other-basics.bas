' What other BASICs have is named, with what there is here.
10 PRINT "x"
INPUT n
GOTO 10
DIM list(3)
GOSUB greet
