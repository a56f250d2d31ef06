' A unit that is none is a fault that names those there are.
TALK DATEADD(TODAY(), 1, "m")
