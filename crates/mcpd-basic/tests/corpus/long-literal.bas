' A literal that would have to be rounded is a fault.
TALK 0.12345678901234567890123456789012345678
