' What an order costs, and when it arrives.
DESCRIPTION "Say what an order of stationery costs and when it arrives"
PARAM customer AS string LIKE "Ada Lovelace" DESCRIPTION "Who orders"
PARAM items AS ARRAY OF string LIKE ["pen", "ink"] DESCRIPTION "What is ordered, each a pen, ink or paper"
PARAM express AS boolean LIKE TRUE DESCRIPTION "Whether it is in a hurry" DEFAULT FALSE
PARAM day AS string LIKE "2026-01-31" DESCRIPTION "When it is ordered, as year-month-day; today without it" DEFAULT ""

IF ISEMPTY(items) THEN ERROR "nothing is ordered"
IF ISEMPTY(day) THEN day = TODAY() ELSE day = DATE(day)

TALK "Order of " + customer
total = 0
FOR EACH item IN items
  TALK "- " + item + ": " + FORMAT(price(item), 2)
  total = total + price(item)
NEXT item

' Large orders are sent for nothing.
shipping = 4.90
IF total >= 20 THEN shipping = 0
days = 5
IF express THEN
  shipping = shipping + 3
  days = 1
END IF

TALK "Shipping: " + FORMAT(shipping, 2)
TALK "To pay: " + FORMAT(total + shipping, 2)
TALK "Arrives on " + DATEADD(day, days, "days")

FUNCTION price(item)
  IF item = "pen" THEN RETURN 2.50
  IF item = "ink" THEN RETURN 7.25
  IF item = "paper" THEN RETURN 12
  ERROR "there is no " + item + " in this shop"
END FUNCTION
