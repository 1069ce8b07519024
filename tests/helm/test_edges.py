"""Services, routes, policies, monitors, notes: the ways to a pod, and what is said about them."""

import json
from pathlib import Path

import pytest
import yaml

from tests.helm.chart import (
    CHART,
    HELMS,
    NAME,
    POSTGRESQL,
    PROFILES,
    SQLITE,
    STAMPING,
    Values,
    extended_chart,
    helm,
    merged,
    of_kind,
    only,
    profile,
    rendered,
)
from tests.helm.schemas import check


@pytest.mark.parametrize("name", PROFILES)
def test_services_select_pods_of_the_release(name: str) -> None:
    objects = profile(name)
    labels = [item["spec"]["template"]["metadata"]["labels"].items() for item in of_kind(objects, "Deployment")]
    for service in of_kind(objects, "Service"):
        assert any(service["spec"]["selector"].items() <= pod for pod in labels)


def test_a_headless_service_serves_clients_that_balance_by_themselves() -> None:
    service = only(profile("ha"), "Service", f"{NAME}-headless")["spec"]
    assert service["clusterIP"] == "None"
    assert [port["name"] for port in service["ports"]] == ["grpc", "metrics"]


def test_ports_say_what_they_speak() -> None:
    ports = [port for item in of_kind(profile("envoy-web"), "Service") for port in item["spec"]["ports"]]
    assert {(port["name"], port["appProtocol"]) for port in ports} == {
        ("grpc", "https"),
        ("metrics", "http"),
        ("envoy", "https"),
        ("web", "http"),
    }


@pytest.mark.parametrize(
    ("name", "kind", "service", "port"),
    [("gateway", "GRPCRoute", NAME, 50051), ("envoy-web", "HTTPRoute", f"{NAME}-envoy", 8080)],
)
def test_a_route_leads_to_its_service(name: str, kind: str, service: str, port: int) -> None:
    (rule,) = only(profile(name), kind)["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": service, "port": port}]
    assert only(profile(name), "Service", service)["spec"]["ports"][0]["port"] == port


@pytest.mark.parametrize(("target", "service", "port"), [("grpc", NAME, 50051), ("web", f"{NAME}-envoy", 8080)])
def test_an_ingress_leads_to_its_service(target: str, service: str, port: int) -> None:
    values = {"ingress": {"enabled": True, "host": "duel.example", "target": target}, "envoy": {"enabled": True}}
    (rule,) = only(rendered({**SQLITE, **values}), "Ingress")["spec"]["rules"]
    assert rule["host"] == "duel.example"
    assert rule["http"]["paths"][0]["backend"] == {"service": {"name": service, "port": {"number": port}}}


def test_a_gateway_verifies_the_service_by_its_name() -> None:
    validation = only(profile("gateway"), "BackendTLSPolicy")["spec"]["validation"]
    assert validation["hostname"] == f"{NAME}.default.svc"


def opened(policy: str, values: Values) -> set[object]:
    """The ports that a network policy opens to the outside."""
    spec = only(rendered(values), "NetworkPolicy", policy)["spec"]
    assert set(spec["policyTypes"]) == {"Ingress", "Egress"}
    return {port["port"] for rule in spec["egress"] for port in rule["ports"]}


def test_only_what_is_needed_goes_out() -> None:
    by_url = {**SQLITE["auth"], "jwks": {"url": "https://id.example/keys"}}
    assert opened(NAME, SQLITE) == {53}
    assert opened(NAME, {**SQLITE, "auth": by_url}) == {53, 443}
    assert opened(NAME, POSTGRESQL) == {53, 5432, 4222}
    assert opened(f"{NAME}-migrate", POSTGRESQL) == {53, 5432}
    assert opened(f"{NAME}-envoy", {**SQLITE, "envoy": {"enabled": True}}) == {53, "grpc"}
    assert opened(f"{NAME}-envoy", {**SQLITE, **STAMPING}) == {53, "envoy"}


def test_metrics_are_for_the_namespace_and_grpc_for_all_unless_peers_are_named() -> None:
    grpc, metrics = only(profile("default"), "NetworkPolicy")["spec"]["ingress"]
    assert grpc == {"ports": [{"port": "grpc"}]}
    assert metrics == {"ports": [{"port": "metrics"}], "from": [{"podSelector": {}}]}
    named, _ = only(profile("gateway"), "NetworkPolicy")["spec"]["ingress"]
    allowed = [peer.get("podSelector", {}).get("matchLabels", {}) for peer in named["from"]]
    assert [labels.get("app.kubernetes.io/component") for labels in allowed] == [None, "envoy", "smoke"]


def test_the_port_at_which_stamps_are_believed_is_for_the_releases_envoy_alone() -> None:
    """Whoever else may call gRPC; and who is not asked for a certificate gets there by no Service but the pods' own."""
    values = merged(SQLITE, STAMPING, {"networkPolicy": {"grpcFrom": [{"podSelector": {}}]}})
    objects = rendered(values)
    rules = only(objects, "NetworkPolicy", NAME)["spec"]["ingress"]
    (rule,) = (rule for rule in rules if {"port": "envoy"} in rule["ports"])
    envoys = only(objects, "Deployment", f"{NAME}-envoy")["spec"]["selector"]
    assert rule == {"ports": [{"port": "envoy"}], "from": [{"podSelector": envoys}]}
    ports = {item["metadata"]["name"]: item["spec"]["ports"] for item in of_kind(objects, "Service")}
    assert [name for name in ports if "envoy" in {port["name"] for port in ports[name]}] == [f"{NAME}-headless"]
    without = rendered({**SQLITE, "envoy": {"enabled": True}})
    assert not any("envoy" in str(rule) for rule in only(without, "NetworkPolicy", NAME)["spec"]["ingress"])


def test_the_policy_of_a_migration_is_there_before_it() -> None:
    policy, job = only(profile("ha"), "NetworkPolicy", f"{NAME}-migrate"), only(profile("ha"), "Job")
    hooks = [item["metadata"]["annotations"]["helm.sh/hook"] for item in (policy, job)]
    assert hooks == ["pre-install,pre-upgrade"] * 2
    assert int(policy["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= job["spec"]["template"]["metadata"]["labels"].items()


def test_a_monitor_finds_the_metrics_of_each_pod_once() -> None:
    selector = only(profile("monitoring"), "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    services = of_kind(profile("monitoring"), "Service")
    found = [item["metadata"]["name"] for item in services if selector.items() <= item["metadata"]["labels"].items()]
    assert found == [f"{NAME}-headless"]
    pods = rendered({**SQLITE, "monitoring": {"podMonitor": {"enabled": True}, "labels": {"release": "p"}}})
    monitor = only(pods, "PodMonitor")
    assert monitor["metadata"]["labels"]["release"] == "p"
    selector = monitor["spec"]["selector"]["matchLabels"]
    assert selector.items() <= only(pods, "Deployment")["spec"]["template"]["metadata"]["labels"].items()


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """The chart with one more file of rules and one more dashboard."""
    return extended_chart(tmp_path)


MONITORED = {**SQLITE, "monitoring": {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}}


@pytest.mark.parametrize("program", HELMS)
def test_every_file_of_alerts_is_a_rule(extended: Path, program: str) -> None:
    rules = of_kind(rendered(MONITORED, program=program, folder=extended), "PrometheusRule")
    files = (extended / "files" / "alerts").glob("*.yaml")
    expected = {
        f"{NAME}-{file.stem.replace('_', '-')}": yaml.safe_load(file.read_text(encoding="utf-8")) for file in files
    }
    assert {rule["metadata"]["name"]: rule["spec"] for rule in rules} == expected
    for rule in rules:
        check(rule, kubernetes="1.37")


@pytest.mark.parametrize("program", HELMS)
def test_every_file_of_dashboards_is_a_config_map(extended: Path, program: str) -> None:
    maps = of_kind(rendered(MONITORED, program=program, folder=extended), "ConfigMap")
    assert {name: json.loads(text) for item in maps for name, text in item["data"].items()} == {
        file.name: json.loads(file.read_text(encoding="utf-8"))
        for file in (extended / "files" / "dashboards").glob("*.json")
    }
    for item in maps:
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_scaling_down_is_slow() -> None:
    """Each pod that goes makes its players reconnect."""
    down = only(profile("openshift"), "HorizontalPodAutoscaler")["spec"]["behavior"]["scaleDown"]
    assert down == {
        "stabilizationWindowSeconds": 600,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
    }
    advanced = only(profile("keda"), "ScaledObject")["spec"]["advanced"]
    assert advanced["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"] == down


def notes(values: Values) -> str:
    """What Helm 4 tells a person after an installation; Helm 3 renders it as well, but shows it only with a cluster."""
    arguments = ("install", "duel", str(CHART), "--dry-run=client", "--values", "-")
    answer = helm("helm-4", *arguments, text=yaml.safe_dump(dict(values)))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.partition("NOTES:\n")[2]


@pytest.mark.parametrize("name", PROFILES)
def test_notes_are_told(name: str) -> None:
    values = yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8"))
    said = notes(values)
    assert f"{NAME}.default.svc:50051 (gRPC over TLS)" in said
    assert ("helm test duel -n default --logs" in said) == bool(values.get("smoke"))
    assert ("All matches are in one SQLite file" in said) == ("nats" not in values)
    assert "<no value>" not in said


TOLD = [
    ({"resources": {"limits": {"cpu": "1"}}}, "WARNING: resources.limits.cpu is set."),
    (
        {"database": {**POSTGRESQL["database"], "postgresql": {"existingSecret": "dsn", "durability": "single-node"}}},
        "survives what that one node survives",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), TOLD)
def test_notes_warn_of_what_costs_promises(change: Values, sentence: str) -> None:
    assert sentence not in notes(POSTGRESQL)
    assert sentence in notes({**POSTGRESQL, **change})
