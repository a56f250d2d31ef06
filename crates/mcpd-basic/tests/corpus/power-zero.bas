' Zero has no negative powers.
TALK 0 ^ -1
