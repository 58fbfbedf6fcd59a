"""Whether a report is what the schema of reports says."""

import json
from functools import cache
from typing import Any

from jsonschema.validators import validator_for

from dpcalc.references import read

SCHEMA = json.loads(read("report-1.schema.json"))


@cache
def _validator() -> Any:
    """The validator, made once: to check the schema itself takes far longer than to check a report."""
    made = validator_for(SCHEMA)
    made.check_schema(SCHEMA)
    return made(SCHEMA)


def conforms(report: Any) -> None:
    """Raise `jsonschema.ValidationError` unless the report conforms to the schema."""
    _validator().validate(report)
