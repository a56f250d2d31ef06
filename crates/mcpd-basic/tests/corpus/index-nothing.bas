' NOTHING has no members.
PARAM order AS object
TALK order.name
