' Numbers are decimal: what is written is what is computed with.
TALK 0.1 + 0.2
TALK 1 / 3
TALK 10 / 4, 10 / 5, 1.50
TALK 7 MOD 3, -7 MOD 3, 7.5 MOD 2
TALK 2 ^ 10, 2 ^ -1, 2 ^ 0.5, -2 ^ 2, 2 ^ 3 ^ 2
TALK 1 + 2 * 3, (1 + 2) * 3, 10 - 4 - 3, - -5
TALK 79228162514264337593543950335
TALK 1000000 * 1000000
