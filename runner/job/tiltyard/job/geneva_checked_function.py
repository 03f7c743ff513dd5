"""Functions of Geneva whose results have as many values as their input has rows."""

from __future__ import annotations

import sys
from typing import Any

from geneva.transformer import UDF, UDFArgType
from ray import cloudpickle

# The image of a job's workers need not contain this package.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class CheckedFunction(UDF):  # type: ignore[misc]
    """A function of whole batches. Geneva itself leaves rows without a value if an array is too short."""

    def __call__(self, *args: Any, use_applier: bool = False, **kwargs: Any) -> Any:
        result = super().__call__(*args, use_applier=use_applier, **kwargs)
        if use_applier and len(result) != len(args[0]):
            raise ValueError(
                f"the function {self.name} returned {len(result)} values for {len(args[0])} rows: "
                "return an array with a value or null for each row"
            )
        return result


def checked(function: UDF) -> UDF:
    """Returns a function that raises ValueError for a result of another length. A function of single rows has no such
    result."""
    if function.arg_type == UDFArgType.SCALAR:
        return function
    # The constructor would derive fields again that the function was registered with.
    copy = CheckedFunction.__new__(CheckedFunction)
    copy.__setstate__(function.__getstate__())
    return copy
