' A text is no date until DATE has made one of it.
' parameters: {"due": "2020-01-01"}
IF due < TODAY() THEN TALK "late"
