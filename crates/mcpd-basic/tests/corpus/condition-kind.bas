' A text is no condition.
IF "yes" THEN TALK "yes"
