"""The manifests and the chart: their form, their arguments, and the rights that they ask for.

There is no cluster here. The manifests are compared with the schemas of several versions of
Kubernetes. The chart is rendered by Go's text/template, with which Helm renders, and uses nothing
that Helm adds to it. The members run with the arguments of the manifest against a small API server
that grants no more than the manifest's role.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from hustings.cli.run import run as run_command
from tests.deployment.rendering import rendered
from tests.deployment.rights import Rights

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
CHART = FOLDER / "chart"
VERSIONS = ("1.25", "1.30", "1.37")

QUORUM: dict[str, Any] = {"guard": {"kind": "quorum"}, "keySecret": "invoices-key"}
FIVE: dict[str, Any] = {**QUORUM, "guard": {"kind": "quorum", "voters": [0, 1, 2, 3, 4]}}
ENGINE: dict[str, Any] = {
    "guard": {
        "kind": "url",
        "url": "postgres://shop@db/shop?password_env=GUARD_PASSWORD",
        "passwordSecret": "shop-db",
    }
}
CHOICES = {"lease": {}, "quorum": QUORUM, "five": FIVE, "engine": ENGINE}

Objects = list[dict[str, Any]]


def objects(text: str) -> Objects:
    return [each for each in yaml.safe_load_all(text) if each]


def values(over: Mapping[str, Any]) -> dict[str, Any]:
    """The chart's values as Helm merges them."""
    merged: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for name, value in over.items():
        merged[name] = {**merged[name], **value} if isinstance(value, dict) else value
    return merged


def chart(over: Mapping[str, Any]) -> Objects:
    given = {"Values": values(over), "Release": {"Name": "shop", "Namespace": "prod"}}
    return objects(rendered(CHART / "templates", given))


SOURCES = ["leased.yaml", "quorum.yaml", *CHOICES]


@pytest.fixture(scope="module")
def manifests() -> dict[str, Objects]:
    found = {
        name: objects((FOLDER / name).read_text(encoding="utf-8"))
        for name in ("leased.yaml", "quorum.yaml")
    }
    return {**found, **{name: chart(over) for name, over in CHOICES.items()}}


@pytest.mark.parametrize("source", SOURCES)
def test_the_objects_are_of_the_form_that_kubernetes_knows(
    manifests: dict[str, Objects], source: str
) -> None:
    assert manifests[source]
    for each in manifests[source]:
        for version in VERSIONS:
            kubernetes_validate.validate(each, version, strict=True)


def test_a_misspelt_field_would_be_noticed(manifests: dict[str, Objects]) -> None:
    deployment = json.loads(json.dumps(only(manifests["leased.yaml"], "Deployment")))
    deployment["spec"]["template"]["spec"]["serviceAccount_Name"] = "invoices"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


def only(found: Objects, kind: str) -> dict[str, Any]:
    (one,) = [each for each in found if each["kind"] == kind]
    return one


def workload(found: Objects) -> dict[str, Any]:
    (one,) = [each for each in found if each["kind"] in ("Deployment", "StatefulSet")]
    return one


def container(found: Objects) -> dict[str, Any]:
    (one,) = workload(found)["spec"]["template"]["spec"]["containers"]
    assert isinstance(one, dict)
    return one


@pytest.mark.parametrize("source", SOURCES)
def test_the_arguments_are_those_of_hustings_run(
    manifests: dict[str, Objects], source: str
) -> None:
    first, *words = container(manifests[source])["args"]
    assert first == "run"
    given = run_command.make_context("run", [str(word) for word in words]).params
    assert given["group"] == "invoices"
    assert given["name"] == "$(POD_NAME)"
    assert list(given["command"])
    grace = float(given["grace"].removesuffix("s"))
    pod = workload(manifests[source])["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > grace


@pytest.mark.parametrize("source", ["quorum.yaml", "quorum", "five"])
def test_voters_seeds_and_copies_are_the_same_members(
    manifests: dict[str, Objects], source: str
) -> None:
    words = container(manifests[source])["args"]
    stateful = workload(manifests[source])
    name, service = stateful["metadata"]["name"], stateful["spec"]["serviceName"]
    copies = [f"{name}-{number}" for number in range(stateful["spec"]["replicas"])]
    assert words[words.index("--guard") + 1] == "quorum://" + ",".join(copies)
    seeds = [words[i + 1] for i, word in enumerate(words) if word == "--join"]
    assert seeds == [f"{copy}.{service}:7400" for copy in copies]
    assert words[words.index("--advertise") + 1] == f"$(POD_NAME).{service}:7400"
    assert only(manifests[source], "Service")["metadata"]["name"] == service


@pytest.mark.parametrize("source", SOURCES)
def test_selectors_find_the_copies(manifests: dict[str, Objects], source: str) -> None:
    labels = workload(manifests[source])["spec"]["template"]["metadata"]["labels"]
    for selector in selectors(manifests[source]):
        assert selector
        assert selector.items() <= labels.items()


def selectors(found: Objects) -> Iterator[dict[str, str]]:
    for each in found:
        spec = each.get("spec", {})
        if each["kind"] == "Service":
            yield spec["selector"]
        elif each["kind"] == "NetworkPolicy":
            yield spec["podSelector"]["matchLabels"]
            yield spec["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
        elif "selector" in spec:
            yield spec["selector"]["matchLabels"]


@pytest.mark.parametrize("source", SOURCES)
def test_volumes_and_secrets_that_are_mounted_exist(
    manifests: dict[str, Objects], source: str
) -> None:
    spec = workload(manifests[source])["spec"]
    pod = spec["template"]["spec"]
    there = {each["name"] for each in pod.get("volumes", [])}
    there |= {each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", [])}
    mounted = {
        mount["name"]
        for each in [*pod.get("initContainers", []), *pod["containers"]]
        for mount in each.get("volumeMounts", [])
    }
    assert mounted == there


@pytest.mark.parametrize("source", ["leased.yaml", "lease"])
def test_the_rights_are_bound_to_the_copies(manifests: dict[str, Objects], source: str) -> None:
    found = manifests[source]
    account = only(found, "ServiceAccount")["metadata"]["name"]
    assert workload(found)["spec"]["template"]["spec"]["serviceAccountName"] == account
    binding = only(found, "RoleBinding")
    assert binding["roleRef"]["name"] == only(found, "Role")["metadata"]["name"]
    assert [each["name"] for each in binding["subjects"]] == [account]


def test_manifest_and_chart_ask_for_the_same_rights(manifests: dict[str, Objects]) -> None:
    by_hand, by_chart = (Rights(only(manifests[each], "Role")) for each in ("leased.yaml", "lease"))
    assert by_hand.rules == by_chart.rules


@pytest.mark.parametrize("over", CHOICES.values(), ids=list(CHOICES))
def test_the_chart_takes_its_own_values(over: dict[str, Any]) -> None:
    jsonschema.validate(values(over), schema())


@pytest.mark.parametrize(
    "over",
    [
        {"guard": {"kind": "quorum"}},
        {**QUORUM, "guard": {"kind": "quorum", "voters": [0, 1]}},
        {"guard": {"kind": "url"}},
        {"guard": {"kind": "raft"}},
        {"group": "Invoices"},
        {"replicas": 0},
        {"ttl": "soon"},
        {"command": []},
        {"comand": ["x"]},
    ],
)
def test_values_that_cannot_work_are_refused(over: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values(over), schema())


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return found


def test_values_are_quoted() -> None:
    words = ["sh", "-c", "echo \"it's 5 o'clock\" # & {{ no }} | *x: [y]\n\techo ü"]
    assert container(chart({"command": words}))["args"][-3:] == words


def test_every_value_of_the_chart_is_used() -> None:
    text = "".join(each.read_text(encoding="utf-8") for each in (CHART / "templates").iterdir())
    for name, value in values({}).items():
        for each in value if isinstance(value, dict) else ():
            assert f".Values.{name}.{each}" in text
        assert f".Values.{name}" in text
