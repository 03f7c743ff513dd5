"""Runs a Python program under Pulumi's engine: `python program.py PATH FOLDER BUCKET KUBECONFIG`. Prints its outputs as JSON.

The automation library runs the program itself. Pulumi's language host for Python is in no Go module that can be built.
"""

import json
import runpy
import sys

from pulumi import automation

path, folder, bucket, kubeconfig = sys.argv[1:]
stack = automation.create_or_select_stack(
    "python",
    project_name="python-program",
    program=lambda: runpy.run_path(path),
    opts=automation.LocalWorkspaceOptions(work_dir=folder),
)
stack.set_config("bucket", automation.ConfigValue(bucket))
stack.set_config("kubeconfig", automation.ConfigValue(open(kubeconfig).read(), secret=True))
preview = stack.preview()
up = stack.up()
again = stack.preview()
print(
    json.dumps(
        {
            "planned": preview.change_summary,
            "done": up.summary.resource_changes,
            "again": again.change_summary,
            "outputs": {name: {"value": output.value, "secret": output.secret} for name, output in up.outputs.items()},
        }
    )
)
