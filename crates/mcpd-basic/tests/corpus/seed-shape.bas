' The shape of a tool that takes an order.
' parameters: {"customer_name": "Ada", "order_amount": 20}
PARAM customer_name AS string LIKE "Ada Lovelace" DESCRIPTION "Who orders"
PARAM order_amount AS number LIKE 99.99 DESCRIPTION "What the goods cost"
DESCRIPTION "Take an order"

# What comes on top of the goods
TALK "Order of " + customer_name
IF order_amount >= 50 THEN
  shipping = 0
ELSE
  shipping = 4.9
END IF
TALK "To pay: " + FORMAT(order_amount + shipping, 2)
