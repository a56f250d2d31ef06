' So is what would be left of it.
TALK 1 MOD 0
