' What can not be calculated with is a fault.
TALK "5" * 2
