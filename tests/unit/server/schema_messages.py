"""Messages of Kafka's own schemas."""

from __future__ import annotations

from pylog.internal_topics.schema import parse_messages
from pylog.server.messages import APIS

MESSAGES = {
    message.name: message for api in APIS.values() for message in (api.request, api.response)
}
EXAMPLE = parse_messages("""
    Example 0-2 flexible=1
      text string? null=1+
      more []int32 2+
      late string 2+ tag=3 default=never
      is_on bool default=true
      nested {Nested}? 1+ tag=0
        number int8
      records records?
""")["Example"]
