"""Clients authenticate with an API key, or with a token that was issued for one."""

import json
import urllib.parse
import urllib.request

import lance.namespace
import lancedb
import pytest
from lance_namespace import ListNamespacesRequest, errors


def test_a_wrong_key_is_told_as_such(catalog):
    wrong = lance.namespace.RestNamespace(uri=catalog.url, **{"header.x-api-key": "wrong"})
    with pytest.raises(errors.UnauthenticatedError):
        wrong.list_namespaces(ListNamespacesRequest(id=[]))
    with pytest.raises(Exception, match="(?i)unauthenticated|unauthorized|401"):
        lancedb.connect_namespace("rest", {**catalog.properties, "header.x-api-key": "wrong"}).list_namespaces()


def test_a_token_that_was_given_for_a_key_is_taken(catalog, namespace):
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "client_secret": catalog.key}).encode()
    with urllib.request.urlopen(f"{catalog.url}/oauth/token", data=form) as answer:
        token = json.load(answer)["access_token"]
    bearer = lance.namespace.RestNamespace(uri=catalog.url, **{"header.Authorization": f"Bearer {token}"})
    assert namespace in bearer.list_namespaces(ListNamespacesRequest(id=[])).namespaces
