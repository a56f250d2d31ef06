' Lists count from 0, grow with PUSH, and are as good as copied.
items = [1, 2, 3]
TALK items[0], items[2], LEN(items)
items[1] = "two"
PUSH items, [4]
copy = items
PUSH copy[3], 5
copy[0] = 0
TALK items
TALK copy
TALK APPEND(items, 6), LEN(items)
TALK CONTAINS(items, "two"), CONTAINS(items, 2), ISEMPTY([]), ISEMPTY([0])
TALK [1, [2]] = [1, [2]], [1] = [2]
