"""Every profile of ci/ is rendered by both Helms, linted, and known to Kubernetes and to the operators of its kinds."""

import copy

import jsonschema
import pytest

from tests.helm.chart import CHART, HELMS, POSTGRESQL, PROFILES, RELEASE, Object, helm, of_kind, only, profile, rendered
from tests.helm.schemas import check

KUBERNETES = ("1.30", "1.33", "1.37")
DECIDED = {"default", "ha", "gateway", "ingress", "envoy-web", "tls", "keda", "openshift", "monitoring"}
VERSIONS = {"helm-3": "v3.17.2", "helm-4": "v4.3.1"}


@pytest.mark.parametrize("program", HELMS)
def test_helm_is_the_version_that_is_named(program: str) -> None:
    assert helm(program, "version", "--short").stdout.startswith(VERSIONS[program])


def test_there_are_the_profiles_that_were_decided() -> None:
    assert set(PROFILES) == DECIDED


@pytest.mark.parametrize("kubernetes", KUBERNETES)
@pytest.mark.parametrize("program", HELMS)
@pytest.mark.parametrize("name", PROFILES)
def test_every_object_of_a_profile_is_known_strictly(name: str, program: str, kubernetes: str) -> None:
    for item in profile(name, program):
        check(item, kubernetes=kubernetes)


@pytest.mark.parametrize("program", HELMS)
@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_linted_strictly(name: str, program: str) -> None:
    values = str(CHART / "ci" / f"{name}-values.yaml")
    answer = helm(program, "lint", "--strict", str(CHART), "--values", values)
    assert answer.returncode == 0, answer.stdout
    assert "WARNING" not in answer.stdout


@pytest.mark.parametrize("name", PROFILES)
def test_both_helms_render_the_same(name: str) -> None:
    assert profile(name, "helm-3") == profile(name, "helm-4")


@pytest.mark.parametrize("name", PROFILES)
def test_no_two_objects_share_a_name(name: str) -> None:
    names = [(item["kind"], item["metadata"]["name"]) for item in profile(name)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("program", HELMS)
def test_an_older_kubernetes_is_refused(program: str) -> None:
    values = str(CHART / "ci" / "default-values.yaml")
    answer = helm(program, "template", RELEASE, str(CHART), "--values", values, "--kube-version", "1.29.9")
    assert "chart requires kubeVersion: >=1.30.0-0" in answer.stderr


def test_the_longest_release_name_fits() -> None:
    """Names of Services and Jobs have 63 characters at most, Helm's releases 53."""
    values = {**POSTGRESQL, "envoy": {"enabled": True}, "migrations": {"mode": "job"}, "nameOverride": "n" * 60}
    names = {item["metadata"]["name"] for item in rendered(values, release="r" * 53)}
    assert max(map(len, names)) <= 63


SPOILT = [
    ("default", "Deployment", ("spec", "replica")),
    ("default", "NetworkPolicy", ("spec", "outgoing")),
    ("gateway", "GRPCRoute", ("spec", "parents")),
    ("gateway", "BackendTLSPolicy", ("spec", "validation", "host")),
    ("envoy-web", "HTTPRoute", ("spec", "rules", "timeout")),
    ("keda", "ScaledObject", ("spec", "minReplicas")),
    ("monitoring", "ServiceMonitor", ("spec", "endpoint")),
    ("tls", "Certificate", ("spec", "secret")),
]


@pytest.mark.parametrize(("name", "kind", "path"), SPOILT)
def test_a_misspelt_key_is_found(name: str, kind: str, path: tuple[str, ...]) -> None:
    item = copy.deepcopy(of_kind(profile(name), kind)[0])
    inner: Object = item
    for step in path[:-1]:
        inner = inner[step][0] if isinstance(inner[step], list) else inner[step]
    inner[path[-1]] = "x"
    with pytest.raises((AssertionError, jsonschema.ValidationError), match=path[-1]):
        check(item, kubernetes="1.37")


def test_what_is_extra_is_rendered_as_a_template() -> None:
    certificate = only(profile("tls"), "Certificate")
    assert certificate["spec"]["dnsNames"][0] == f"{RELEASE}-spectacular-bid.default.svc"
