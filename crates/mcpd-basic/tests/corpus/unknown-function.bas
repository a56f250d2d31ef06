' A function that is not there is found before anything runs.
TALK "never"
TALK UCSE("a")
TALK lenght("a") + nonsense(1)
