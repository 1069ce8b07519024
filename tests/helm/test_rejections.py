"""What cannot work is refused by both Helms before anything is installed, with one clear sentence."""

from typing import Any

import pytest

from tests.helm.chart import HELMS, POSTGRESQL, SQLITE, STAMPING, Values, merged, refusal, rendered

TRIGGER = [{"type": "cpu", "metadata": {"value": "60"}}]
PARENTS = [{"name": "public"}]
CLIENT_CA = {"tls": {"clientCA": {"existingSecret": "clients"}}}


def without(base: Values, *keys: str) -> dict[str, Any]:
    """The base without some keys."""
    return {key: value for key, value in base.items() if key not in keys}


IMPOSSIBLE = [
    (merged(SQLITE, {"replicas": 3}), "replicas must be 1 and not 3; more need postgresql."),
    (merged(SQLITE, {"autoscaling": {"hpa": {"enabled": True}}}), "so it cannot be autoscaled; that needs postgresql."),
    (
        merged(SQLITE, {"autoscaling": {"keda": {"enabled": True, "triggers": TRIGGER}}}),
        "so it cannot be autoscaled; that needs postgresql.",
    ),
    (
        merged(SQLITE, {"database": {"postgresql": {"existingSecret": "dsn"}}}),
        "database.postgresql.existingSecret is set, but database.kind is sqlite: set it to postgresql.",
    ),
    (merged(SQLITE, {"nats": {"url": "nats://nats:4222"}}), "nats.url is set, but database.kind is sqlite"),
    (
        merged(POSTGRESQL, {"database": {"postgresql": {"existingSecret": ""}}}),
        "database.kind=postgresql needs database.postgresql.existingSecret, a Secret with the address of the database.",
    ),
    (without(POSTGRESQL, "nats"), "database.kind=postgresql needs nats.url, by which pods tell each other"),
    (without(POSTGRESQL, "sealingKey"), "database.kind=postgresql needs sealingKey.existingSecret"),
    (
        merged(POSTGRESQL, {"database": {"sqlite": {"existingClaim": "old"}}}),
        "database.sqlite.existingClaim is set, but database.kind is postgresql",
    ),
    (without(SQLITE, "tls"), "tls.existingSecret is missing: beyond loopback the service listens with TLS only"),
    (merged(SQLITE, {"nats": {"existingSecret": "creds"}}), "nats.existingSecret needs nats.url."),
    (without(SQLITE, "auth"), "auth is missing: beyond loopback players need platform credentials"),
    (
        merged(SQLITE, {"auth": {"jwks": {"url": "https://id.example/keys"}}}),
        "Only one of auth.jwks.existingSecret and auth.jwks.url can be set.",
    ),
    (merged(SQLITE, {"auth": {"issuer": ""}}), "auth.jwks needs auth.issuer."),
    (merged(SQLITE, {"auth": {"audience": ""}}), "auth.jwks needs auth.audience."),
    (
        merged(SQLITE, CLIENT_CA, {"auth": {"jwks": {"existingSecret": ""}, "clientScopes": {"lobby": ["admin"]}}}),
        "auth.issuer needs auth.jwks.existingSecret or auth.jwks.url.",
    ),
    (
        merged(SQLITE, {"auth": {"clientScopes": {"lobby": ["match:create"]}}}),
        "auth.clientScopes needs tls.clientCA.existingSecret, the authorities of those certificates.",
    ),
    (
        merged(SQLITE, {"listen": {"address": "127.0.0.1"}}),
        "listen.address=127.0.0.1 is a loopback address, which neither players nor the kubelet's probes can reach.",
    ),
    (merged(SQLITE, {"listen": {"address": "::1"}}), "listen.address=::1 is a loopback address"),
    (
        merged(SQLITE, {"listen": {"healthPort": 50051}}),
        "listen.grpcPort, listen.envoyPort, listen.healthPort and listen.metricsPort must differ.",
    ),
    (
        merged(SQLITE, STAMPING, {"listen": {"healthPort": 50053}}),
        "listen.grpcPort, listen.envoyPort, listen.healthPort and listen.metricsPort must differ.",
    ),
    (merged(SQLITE, {"envoy": {"enabled": True, "port": 8081}}), "envoy.port and envoy.statusPort must differ."),
    (
        merged(POSTGRESQL, {"autoscaling": {"hpa": {"enabled": True}, "keda": {"enabled": True, "triggers": TRIGGER}}}),
        "Only one of autoscaling.hpa and autoscaling.keda can be enabled.",
    ),
    (
        merged(POSTGRESQL, {"autoscaling": {"keda": {"enabled": True}}}),
        "autoscaling.keda needs at least one of autoscaling.keda.triggers.",
    ),
    (
        merged(POSTGRESQL, {"autoscaling": {"hpa": {"enabled": True, "minReplicas": 11}}}),
        "autoscaling.hpa.minReplicas=11 is greater than maxReplicas=10.",
    ),
    (
        merged(SQLITE, {"gateway": {"grpcRoute": {"enabled": True}}}),
        "gateway.grpcRoute needs gateway.grpcRoute.parentR",
    ),
    (
        merged(SQLITE, {"gateway": {"httpRoute": {"enabled": True, "parentRefs": PARENTS}}}),
        "gateway.httpRoute leads to Envoy, so it needs envoy.enabled.",
    ),
    (
        merged(SQLITE, {"gateway": {"backendTLS": {"enabled": True}}}),
        "gateway.backendTLS needs gateway.backendTLS.caConfigMap, the authorities of the service's certificate.",
    ),
    (merged(SQLITE, {"ingress": {"enabled": True}}), "ingress needs ingress.host."),
    (
        merged(SQLITE, {"ingress": {"enabled": True, "host": "duel.example", "target": "web"}}),
        "ingress.target=web leads to Envoy, so it needs envoy.enabled.",
    ),
    (
        merged(SQLITE, CLIENT_CA, {"envoy": {"enabled": True}}),
        "tls.clientCA asks every client for a certificate, so Envoy needs envoy.clientCertificate.",
    ),
    (
        merged(SQLITE, {"envoy": {"enabled": True, "clientCertificate": "envoy"}}),
        "envoy.clientCertificate needs envoy.clientCA.existingSecret or tls.clientCA.existingSecret: ",
    ),
    (
        merged(SQLITE, STAMPING, {"envoy": {"clientCertificate": ""}}),
        "envoy.clientCA opens a port to Envoy's certificate alone, so it needs envoy.enabled and envoy.clientCert",
    ),
    (
        merged(SQLITE, STAMPING, {"envoy": {"enabled": False}}),
        "envoy.clientCA opens a port to Envoy's certificate alone, so it needs envoy.enabled and envoy.clientCert",
    ),
    (
        merged(SQLITE, STAMPING, {"tls": {"clientCA": {"existingSecret": "envoys"}}}),
        "envoy.clientCA and tls.clientCA name one Secret, so every client could say when its commands came",
    ),
    (
        merged(SQLITE, {"monitoring": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}}),
        "Only one of monitoring.serviceMonitor and monitoring.podMonitor can be enabled",
    ),
    (merged(SQLITE, {"smoke": {"players": ["one"]}}), "smoke.players needs two Secrets"),
    (
        merged(SQLITE, {"extraEnv": [{"name": "SPECBID_AUTH", "value": "guest"}]}),
        "extraEnv sets SPECBID_AUTH, which the chart sets from other values.",
    ),
]

WRONG = [
    # Unknown keys, at any depth.
    ({"replica": 1}, "replica"),
    ({"database": {"postgres": {}}}, "postgres"),
    ({"tls": {"clientCA": {"secret": "x"}}}, "secret"),
    ({"probes": {"startup": {"period": 1}}}, "period"),
    ({"monitoring": {"dashboards": {"folder": "x"}}}, "folder"),
    ({"extraEnv": [{"name": "A", "values": "x"}]}, "values"),
    # Values of another type or outside their bounds.
    ({"replicas": "3"}, "replicas"),
    ({"replicas": 0}, "replicas"),
    ({"database": {"kind": "mysql"}}, "kind"),
    ({"database": {"postgresql": {"durability": "hope"}}}, "durability"),
    ({"database": {"sqlite": {"size": "much"}}}, "size"),
    ({"nats": {"url": "http://nats:4222"}}, "url"),
    ({"auth": {"jwks": {"url": "http://id.example"}}}, "url"),
    ({"auth": {"clientScopes": {"lobby": ["match:make"]}}}, "clientScopes"),
    ({"limits": {"commandsPerSecond": 0}}, "commandsPerSecond"),
    ({"timing": {"storeGapMs": 299}}, "storeGapMs"),
    ({"stop": {"drainSeconds": 301}}, "drainSeconds"),
    ({"stop": {"preStopSeconds": 2.5}}, "preStopSeconds"),
    ({"listen": {"grpcPort": 70000}}, "grpcPort"),
    ({"image": {"digest": "sha256:abc"}}, "digest"),
    ({"log": {"level": "trace"}}, "level"),
    ({"podSecurity": {"runAsUser": 0}}, "runAsUser"),
    ({"migrations": {"mode": "sometimes"}}, "mode"),
    ({"commonLabels": {"a": 1}}, "commonLabels"),
    ({"smoke": {"players": ["one", "two", "three"]}}, "players"),
]


@pytest.mark.parametrize("values", [SQLITE, POSTGRESQL], ids=["sqlite", "postgresql"])
def test_what_the_bad_examples_start_from_is_good(values: Values) -> None:
    assert rendered(values)


@pytest.mark.parametrize("program", HELMS)
@pytest.mark.parametrize(("values", "sentence"), IMPOSSIBLE)
def test_an_impossible_combination_is_refused(values: Values, sentence: str, program: str) -> None:
    assert sentence in refusal(values, program=program)


@pytest.mark.parametrize("program", HELMS)
@pytest.mark.parametrize(("change", "named"), WRONG)
def test_a_wrong_value_is_refused_by_name(change: Values, named: str, program: str) -> None:
    answer = refusal(merged(SQLITE, change), program=program)
    assert "values don't meet the specifications of the schema" in answer
    assert named in answer


def test_each_problem_is_told() -> None:
    """Nobody has to try again for each."""
    answer = refusal({"replicas": 2}, program="helm-4")
    assert "replicas must be 1" in answer
    assert "tls.existingSecret is missing" in answer
    assert "auth is missing" in answer
