' Members of an object are read and set by name; those that are missing are NOTHING.
' parameters: {"order": {"id": 7, "customer": {"name": "Ada"}, "lines": [1, 2]}}
TALK order.customer.name, order["id"], ISEMPTY(order.note)
order.id = order.id + 1
order["note"] = "new"
order.customer.name = UCASE(order.customer.name)
PUSH order.lines, 3
key = "lines"
TALK order[key][2], LEN(order)
TALK order
