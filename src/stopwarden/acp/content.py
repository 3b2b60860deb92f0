"""What a client's content blocks say to a model, and nothing lost of them.

May not live here: files; a link is told as a link, and the model may read it with its tools.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from acp import RequestError
from acp.schema import (
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from stopwarden.models.port import Image, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.models.port import Said


def said_in(blocks: Iterable[Any]) -> tuple[Said, ...]:
    """The words and pictures of a prompt. Raises RequestError for a block that cannot be told to a model."""
    said: list[Said] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                said.append(Text(text=text))
            case ImageContentBlock(data=data, mime_type=kind):
                try:
                    said.append(Image(data=base64.b64decode(data, validate=True), media_type=kind))
                except binascii.Error:
                    raise RequestError.invalid_params({"details": "an image is not base64"}) from None
            case ResourceContentBlock(uri=uri, name=name):
                said.append(Text(text=f"[{name}]({uri})"))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                said.append(Text(text=f"<resource uri={uri!r}>\n{text}\n</resource>"))
            case _:
                raise RequestError.invalid_params({"details": f"{type(block).__name__} is not taken"})
    if not said:
        raise RequestError.invalid_params({"details": "the prompt is empty"})
    return tuple(said)
