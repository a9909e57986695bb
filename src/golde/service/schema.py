"""What requests and answers have in common. Examples everywhere are of ``world``, the graph that ships."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from golde.service.limits import LONGEST_NAME

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
RunName = Annotated[
    str, Field(max_length=LONGEST_NAME, description="The name of a run.", examples=["world"])
]
Split = Literal["train", "valid", "test"]
Probability = Annotated[
    float | None, Field(description="That the fact is true; null of a run that is not calibrated.")
]


def with_example(**example: Any) -> ConfigDict:
    """A configuration of a model that shows an example in the description of the service."""
    return ConfigDict(json_schema_extra={"examples": [example]})
