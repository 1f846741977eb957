"""What URIs, storage options and the environment say about a store, without asking any."""

from __future__ import annotations

import pytest

from pylog.files import stores
from pylog.files.stores import StoreUriError, made_by_arrow, parse_parameters


def test_a_name_that_is_nearly_one_is_suggested() -> None:
    with pytest.raises(StoreUriError) as caught:
        parse_parameters("?regions=hidden", {"region": str, "scheme": str})
    assert str(caught.value) == (
        "unknown parameter 'regions' (did you mean 'region'?); there are region, scheme"
    )
    with pytest.raises(StoreUriError, match=r"^parameter 'flag' has an invalid value$"):
        parse_parameters("?flag=hidden", {"flag": stores.boolean})


def test_what_arrow_cannot_make_is_said_without_values() -> None:
    with pytest.raises(StoreUriError, match="does not know all of no_such_thing; a newer one does"):
        made_by_arrow("S3FileSystem", {"no_such_thing": "hidden"})
    with pytest.raises(StoreUriError, match="account_name, tenant_id do not go together"):
        made_by_arrow("AzureFileSystem", {"account_name": "me", "tenant_id": "hidden"})
