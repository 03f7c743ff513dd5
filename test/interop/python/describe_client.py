"""Prints the operations of the installed generated client with parameters and models, and the fields of its models."""

import inspect
import json
import re

from lance_namespace_urllib3_client import api, models

find = re.findall
operations = {}
for each in (value for name, value in vars(api).items() if name.endswith("Api")):
    for name, function in inspect.getmembers(each, inspect.isfunction):
        if name.endswith("_serialize"):
            source = inspect.getsource(function)
            called = inspect.getsource(getattr(each, name[1:].removesuffix("_serialize")))
            [method], [path] = find(r"method='(\w+)'", source), find(r"resource_path='([^']+)'", source)
            operations[f"{method.lower()} {path}"] = {
                "parameters": find(r"_query_params\.append\(\('(\w+)'", source),
                "request": find(r"\b(\w+Request)\b", called.split(") ->")[0]),
                "response": find(r"'20\d': .(\w+).", called),
            }
fields = {
    name: {
        field.alias or key: find(r"models\.\w+\.(\w+)", str(field.annotation))
        for key, field in each.model_fields.items()
    }
    for name, each in vars(models).items()
    if hasattr(each, "model_fields") and "actual_instance" not in each.model_fields
}
print(json.dumps([operations, fields]))
