' A fault is marked under its place, whatever is before it.
x = 1
	TALK "größe" +	missing
