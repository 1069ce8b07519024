"""Strict checks of objects: Kubernetes' own by its published schemas, operators' by their models or schemas of ours."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml
from cloudcoil.models.cert_manager.v1 import Certificate
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule, ServiceMonitor

from tests.helm.chart import Object

GATEWAY_API: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "gateway_api.yaml").read_text(encoding="utf-8"))
MODELS = {model.__name__: model for model in (Certificate, PodMonitor, PrometheusRule, ScaledObject, ServiceMonitor)}


def check(item: Object, *, kubernetes: str) -> None:
    """Look at an object; one that has been looked at is not looked at again. Raises as `check_text`."""
    check_text(json.dumps(item, sort_keys=True), kubernetes)


@cache
def check_text(text: str, kubernetes: str) -> None:
    """Raises jsonschema's or pydantic's ValidationError, or AssertionError, on what a cluster would not know."""
    item = json.loads(text)
    kind, version = item["kind"], item["apiVersion"]
    if kind in MODELS:
        check_by_model(item)
    elif version.startswith("gateway.networking.k8s.io/"):
        schema = {"$ref": f"#/definitions/{kind}", "definitions": GATEWAY_API}
        jsonschema.validate(item, schema, cls=jsonschema.Draft7Validator)
    else:
        kubernetes_validate.validate(item, kubernetes, strict=True)


def check_by_model(item: Object) -> None:
    """Through the operator's model and back: what it does not know is lost on the way."""
    there = MODELS[item["kind"]].model_validate(item)
    back = there.model_dump(by_alias=True, exclude_unset=True, mode="json")
    assert back == item, f"{item} comes back as {back}"
