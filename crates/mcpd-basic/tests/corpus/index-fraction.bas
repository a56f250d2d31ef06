' Nor one between two others.
items = [1, 2]
items[0.5] = 1
