' FOR EACH goes through a list as it was when it began.
items = ["a", "b"]
FOR EACH item IN items
  PUSH items, item + item
  TALK item
NEXT item
TALK items
FOR EACH n IN []
  TALK "never"
NEXT
FOR EACH row IN [[1, 2], [3]]
  FOR EACH cell IN row
    TALK cell
  NEXT cell
NEXT row
