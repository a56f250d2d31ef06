' JSON becomes values, whatever its kind.
' parameters: {"text": "t", "number": 1.50, "big": 9007199254740993, "small": 1e-7, "yes": true, "none": null, "list": [1, 2, "x", null, {"a": []}], "object": {"name": "n", "Tags": ["a", "b\"c"], "none": {}}, "undeclared": 1}
TALK text, number, big, small, yes, none
TALK list
TALK object
TALK list[0] + list[1], object.name, object["Tags"][1], object.nothing_there
undeclared = undeclared + 1
TALK undeclared
