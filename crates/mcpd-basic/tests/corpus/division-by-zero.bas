' Division by zero is a fault with its line.
total = 10
parts = 0
TALK total / parts
