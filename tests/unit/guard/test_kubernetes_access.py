"""Which server of Kubernetes an address means, and how it is entered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio import client, config

from hustings.core.errors import BadInput
from hustings.guard import Unreachable, kubernetes, make_guard
from tests.guard.fakes.kubernetes import Kubernetes
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_http import Network, patched

HOST = "KUBERNETES_SERVICE_HOST"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: here, cluster: {server: "http://near:1"}}
- {name: there, cluster: {server: "http://far:1"}}
users: [{name: me, user: {token: s3cret}}]
contexts:
- {name: here, context: {cluster: here, user: me}}
- {name: there, context: {cluster: there, user: me}}
"""


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.delenv(HOST, raising=False)
    return patched(monkeypatch)


async def asked_by(network: Network, url: str) -> tuple[str, str, str | None]:
    """Who is asked, for what, and as whom."""
    del network.asked[:]
    with pytest.raises(Unreachable):
        await make_guard(url, "jobs").open()
    assert network.open == 0
    (asked,) = network.asked
    return asked.place, asked.path.partition("/namespaces/")[2], asked.headers.get("Authorization")


@pytest.mark.parametrize(
    "url, place",
    [
        ("kubernetes://h", "https://h:6443"),
        ("kubernetes://h:99?tls=no", "http://h:99"),
        ("kubernetes://h?tls=yes", "https://h:6443"),
        ("kubernetes://[::1]:99?tls=no", "http://::1:99"),
    ],
)
def test_a_host_that_is_given_is_asked(network: Network, url: str, place: str) -> None:
    async def story() -> None:
        assert await asked_by(network, url) == (place, "default/leases/jobs", None)

    virtually(story())


def test_token_namespace_and_lease_are_given_by_the_address(network: Network) -> None:
    async def story() -> None:
        url = "kubernetes://:t0ken@h/prod?lease=other.name"
        asked = await asked_by(network, url)
        assert asked == ("https://h:6443", "prod/leases/other.name", "Bearer t0ken")

    virtually(story())


def test_papers_that_cannot_be_read_are_refused(network: Network) -> None:
    async def story() -> None:
        with pytest.raises(BadInput, match="kubernetes://h: its certificates: "):
            await make_guard("kubernetes://h?ca=no-such-file", "jobs").open()

    virtually(story())


def test_without_a_host_it_is_found_as_kubectl_would(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    bearer = "Bearer s3cret"
    monkeypatch.setenv(HOST, "10.0.0.1")

    async def story() -> None:
        given = f"kubeconfig={file}"
        here = ("http://near:1", "prod/leases/jobs", bearer)
        assert await asked_by(network, f"kubernetes:///prod?{given}") == here
        there = ("http://far:1", "default/leases/jobs", bearer)
        assert await asked_by(network, f"kubernetes://?{given}&context=there") == there
        with pytest.raises(BadInput, match=r"kubernetes: no server is known: .*nowhere"):
            await make_guard(f"kubernetes://?{given}&context=nowhere", "jobs").open()
        with pytest.raises(BadInput, match="no server is known"):
            await make_guard(f"kubernetes://?kubeconfig={tmp_path}/none", "jobs").open()

    virtually(story())


def in_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(client_configuration: Any) -> None:
        client_configuration.host = "https://10.0.0.1:443"
        client_configuration.api_key = {"BearerToken": "Bearer of-the-pod"}

    monkeypatch.setenv(HOST, "10.0.0.1")
    monkeypatch.setattr(config, "load_incluster_config", load)


def test_in_a_cluster_it_is_the_clusters_own(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_cluster(monkeypatch)
    file = tmp_path / "namespace"
    monkeypatch.setattr(kubernetes, "NAMESPACE_FILE", file)

    async def story() -> None:
        asked = await asked_by(network, "kubernetes://")
        assert asked == ("https://10.0.0.1:443", "default/leases/jobs", "Bearer of-the-pod")
        file.write_text("mine\n")
        assert (await asked_by(network, "kubernetes://"))[1] == "mine/leases/jobs"
        assert (await asked_by(network, "kubernetes:///prod"))[1] == "prod/leases/jobs"

    virtually(story())


def test_a_context_that_is_named_goes_before_the_cluster_one_is_in(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_cluster(monkeypatch)
    loaded: list[tuple[str | None, str | None]] = []

    async def load(
        config_file: str | None, context: str | None, client_configuration: client.Configuration
    ) -> None:
        loaded.append((config_file, context))
        client_configuration.host = "http://near:1"

    monkeypatch.setattr(config, "load_kube_config", load)

    async def story() -> None:
        assert (await asked_by(network, "kubernetes://?context=x"))[0] == "http://near:1"
        assert (await asked_by(network, "kubernetes://?kubeconfig=y"))[0] == "http://near:1"
        monkeypatch.delenv(HOST)
        assert (await asked_by(network, "kubernetes://"))[0] == "http://near:1"
        assert loaded == [(None, "x"), ("y", None), (None, None)]

    virtually(story())


def test_what_is_missing_in_the_cluster_is_told(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOST, "")

    async def story() -> None:
        with pytest.raises(BadInput, match="kubernetes: no server is known: "):
            await make_guard("kubernetes://", "jobs").open()

    virtually(story())


def test_a_guard_that_was_opened_once_keeps_its_connection(network: Network) -> None:
    async def story() -> None:
        network.servers["http://h:6443"] = Kubernetes()
        async with make_guard("kubernetes://h?tls=no", "jobs") as guard:
            await guard.open()
            assert network.open == 1

    virtually(story())


@pytest.mark.parametrize(
    "url, says",
    [
        ("kubernetes://h?tmeout=1", "timeout"),
        ("kubernetes://a,b", "takes one host"),
        ("kubernetes://ada:pw@h", "a token as kubernetes://:token@host"),
        ("kubernetes://h/No_Namespace", "a namespace is named by small letters"),
        ("kubernetes://h?lease=No_Lease", "a Lease is named by small letters"),
        ("kubernetes://h?context=x", "option context of kubernetes is for an address without"),
        ("kubernetes://h?kubeconfig=x", "option kubeconfig of kubernetes is for an address"),
        ("kubernetes://?ca=x", "option ca of kubernetes needs a host"),
        ("kubernetes://?tls=no", "option tls of kubernetes needs a host"),
        ("kubernetes://h?tls=maybe", "must be one of yes, no"),
        ("kubernetes://h?timeout=0", "positive time"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")
