' Forms that hosts of BASIC have: templates, objects, tests for NULL, and the result of a program.
name = "Ada"
order = {
  "id": 7, ' over several lines
  description: "pens",
  lines: [{}, {"n": 1}]
}
TALK "Order ${order.id} of ""${name}"": ${UCASE(order.description)}${open"
TALK order
IF order.note IS NULL AND name IS NOT NULL THEN TALK "no note"
IF order.id = 7 THEN RETURN "total ${order.id * 2}"
TALK "never"
