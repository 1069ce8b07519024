"""What every pod of the chart is like, and how one stops."""

import pytest

from service.core import GRACE_SECONDS
from service.rpc.server import LIVENESS, READINESS, STARTUP
from tests.helm.chart import (
    NAME,
    POSTGRESQL,
    PROFILES,
    SQLITE,
    Object,
    Values,
    containers,
    environment,
    of_kind,
    only,
    pods,
    profile,
    rendered,
    server,
)

FINISH_SECONDS = 5
"""What the chart leaves after the drain."""
HARDENED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@pytest.mark.parametrize("name", PROFILES)
def test_every_pod_is_hardened(name: str) -> None:
    for pod in pods(profile(name)).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert all(container["securityContext"] == HARDENED for container in containers(pod))


@pytest.mark.parametrize("name", PROFILES)
def test_nothing_has_a_cpu_limit(name: str) -> None:
    """Being throttled is a timing failure."""
    for pod in pods(profile(name)).values():
        assert all("cpu" not in container.get("resources", {}).get("limits", {}) for container in containers(pod))


def test_ids_are_fixed_and_can_be_left_to_the_cluster() -> None:
    fixed = server(profile("default"))["securityContext"]
    assert (fixed["runAsUser"], fixed["runAsGroup"], fixed["fsGroup"]) == (65532, 65532, 65532)
    for pod in pods(profile("openshift")).values():
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["securityContext"].keys()


@pytest.mark.parametrize("name", PROFILES)
def test_probes_ask_the_plaintext_health_port_by_name(name: str) -> None:
    (container,) = server(profile(name))["containers"]
    port = int(environment(server(profile(name)))["SPECBID_HEALTH_PORT"]["value"])
    asked = {kind: container[f"{kind}Probe"]["grpc"] for kind in ("startup", "readiness", "liveness")}
    assert asked == {
        "startup": {"port": port, "service": STARTUP},
        "readiness": {"port": port, "service": READINESS},
        "liveness": {"port": port, "service": LIVENESS},
    }


STOPS = [(0, 0), (5, 5), (15, 30), (0, 300)]


@pytest.mark.parametrize(("pre_stop", "drain"), STOPS)
def test_the_grace_is_the_sum_of_the_parts_of_a_stop(pre_stop: int, drain: int) -> None:
    pod = server(rendered({**SQLITE, "stop": {"preStopSeconds": pre_stop, "drainSeconds": drain}}))
    assert pod["terminationGracePeriodSeconds"] == pre_stop + drain + FINISH_SECONDS
    assert environment(pod)["SPECBID_DRAIN_SECONDS"]["value"] == str(drain)
    hooks = pod["containers"][0].get("lifecycle", {"preStop": {"sleep": {"seconds": 0}}})
    assert hooks == {"preStop": {"sleep": {"seconds": pre_stop}}}


def test_the_grace_leaves_time_when_calls_take_as_long_as_they_may() -> None:
    """The service waits GRACE_SECONDS for calls to end, and must store its retirement before it is killed."""
    assert GRACE_SECONDS + 1 < FINISH_SECONDS


def test_sqlite_has_one_pod_that_is_replaced_and_a_claim() -> None:
    objects = profile("default")
    spec = only(objects, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    claim = only(objects, "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    (volume,) = (volume for volume in spec["template"]["spec"]["volumes"] if volume["name"] == "data")
    assert volume["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    assert of_kind(objects, "PodDisruptionBudget") == []


def test_a_claim_that_exists_is_used() -> None:
    objects = rendered({**SQLITE, "database": {"sqlite": {"existingClaim": "old"}}})
    assert of_kind(objects, "PersistentVolumeClaim") == []
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "old"}} in server(objects)["volumes"]


def test_postgresql_has_pods_that_are_added_before_others_go() -> None:
    objects = profile("ha")
    spec = only(objects, "Deployment")["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    budget = only(objects, "PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert budget["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert of_kind(objects, "PersistentVolumeClaim") == []


def test_pods_are_spread_over_zones_and_nodes() -> None:
    pod = server(profile("ha"))
    constraints = {item["topologyKey"]: item["whenUnsatisfiable"] for item in pod["topologySpreadConstraints"]}
    assert constraints == {
        "topology.kubernetes.io/zone": "DoNotSchedule",
        "kubernetes.io/hostname": "DoNotSchedule",
    }
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


@pytest.mark.parametrize("name", ["keda", "openshift"])
def test_an_autoscaler_alone_says_how_many_pods_there_are(name: str) -> None:
    assert "replicas" not in only(profile(name), "Deployment", NAME)["spec"]


MIGRATIONS = [("hook", 1, 0), ("job", 1, 0), ("initContainer", 0, 1), ("none", 0, 0)]


@pytest.mark.parametrize(("mode", "jobs", "inits"), MIGRATIONS)
def test_migrations_run_where_they_are_told_to(mode: str, jobs: int, inits: int) -> None:
    objects = rendered({**POSTGRESQL, "migrations": {"mode": mode}})
    assert len(of_kind(objects, "Job")) == jobs
    assert len(server(objects).get("initContainers", [])) == inits
    runs = [pod for place, pod in pods(objects).items() if place.startswith("Job")] + [server(objects)] * inits
    for pod in runs:
        first = containers(pod)[0]
        assert first["args"] == ["migrate"]
        assert first["env"][0]["valueFrom"] == {"secretKeyRef": {"name": "dsn", "key": "url"}}
        assert "volumeMounts" not in first
    hooks = [job["metadata"].get("annotations", {}).get("helm.sh/hook") for job in of_kind(objects, "Job")]
    assert hooks == ([None if mode == "job" else "pre-install,pre-upgrade"] * jobs)


def test_sqlite_needs_no_migrations() -> None:
    assert of_kind(profile("default"), "Job") == []


def test_another_image_is_another_migration_job() -> None:
    """A Job cannot be changed, so an upgrade with the same name would fail."""
    mode: Values = {**POSTGRESQL, "migrations": {"mode": "job"}}
    first, second = (only(rendered({**mode, "image": {"tag": tag}}), "Job") for tag in ("1", "2"))
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert "-migrate-0-1-0-" in first["metadata"]["name"]


def test_secrets_are_read_only_folders() -> None:
    """Folders rather than files, so that a renewed Secret arrives."""
    pod = server(profile("tls"))
    secrets = {volume["name"]: volume["secret"] for volume in pod["volumes"] if "secret" in volume}
    assert {name: secret["secretName"] for name, secret in secrets.items()} == {
        "tls": "spectacular-bid-tls",
        "client-ca": "clients-ca",
        "envoy-ca": "envoy-client-ca",
        "jwks": "platform-keys",
        "sealing-key": "spectacular-bid-sealing-key",
    }
    mounts: dict[str, Object] = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    for name, secret in secrets.items():
        assert secret["defaultMode"] == 0o440
        assert mounts[name]["readOnly"] is True
        assert "subPath" not in mounts[name]


def test_the_test_plays_a_match_as_two_players() -> None:
    pod = only(profile("ha"), "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert pod["spec"]["containers"][0]["args"] == [
        "smoke",
        f"--server={NAME}.default.svc:50051",
        "--ca=/etc/smoke/ca/ca.crt",
        "--timeout=240",
        "--as",
        "/etc/smoke/player-0",
        "/etc/smoke/player-1",
    ]
    assert of_kind(profile("default"), "Pod") == []
