"""The Dockerfile: linted, hashed, without rights and secrets, and of the version that the project has."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HADOLINT = Path(sys.executable).with_name("hadolint")
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions with their arguments, comments dropped and lines joined."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", plain)
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


ALL = instructions(TEXT)
FINAL = ALL[max(number for number, (word, _) in enumerate(ALL) if word == "FROM") :]


def only(word: str) -> str:
    """The arguments of the one instruction of this name in the final stage."""
    (rest,) = (rest for name, rest in FINAL if name == word)
    return rest


def hadolint(text: str) -> subprocess.CompletedProcess[str]:
    """What hadolint says of a Dockerfile."""
    return subprocess.run([HADOLINT, "--no-color", "-"], input=text, capture_output=True, text=True, check=False)


def test_hadolint_has_nothing_to_say() -> None:
    said = hadolint(TEXT)
    assert (said.returncode, said.stdout) == (0, "")
    assert "DL3002" in hadolint("FROM debian:13\nUSER root\n").stdout


def test_the_base_is_pinned_and_can_be_chosen() -> None:
    """One base for both stages, of a named patch version of a Python that the project runs on."""
    bases = [rest for word, rest in ALL if word == "FROM"]
    assert bases == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]
    word, default = ALL[0]
    assert word == "ARG"
    found = re.fullmatch(r"PYTHON_IMAGE=docker\.io/library/python:(3\.\d+)\.\d+-slim-\w+", default)
    assert found is not None
    assert f"Programming Language :: Python :: {found[1]}" in PROJECT["classifiers"]


def test_whatever_is_installed_from_elsewhere_has_a_hash_and_is_not_compiled() -> None:
    commands = [command for word, rest in ALL if word == "RUN" for command in rest.split("&&")]
    installs = [command for command in commands if " install " in command and "pip" in command]
    fetching = [command for command in installs if "--no-deps" not in command]
    assert len(installs) == len(fetching) + 1
    for command in fetching:
        assert re.search(r"--require-hashes --only-binary :all: --requirement \.locks/(run|build)\.txt", command)
    assert not any(re.search(r"apt|curl|wget|gcc", command) for command in commands)


@pytest.mark.parametrize("name", ["run", "build"])
def test_every_locked_package_has_a_hash(name: str) -> None:
    lines = (ROOT / ".locks" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    pinned = [number for number, line in enumerate(lines) if "==" in line]
    assert pinned
    assert all("--hash=sha256:" in lines[number + 1] for number in pinned)


def test_it_runs_as_nobody_in_particular_and_only_its_data_can_be_written() -> None:
    assert only("USER") == "65532:65532"
    assert only("RUN") == "install -d -m 0700 -o 65532 -g 65532 /data"
    assert only("WORKDIR") == only("VOLUME") == "/data"
    assert "SPECBID_DATABASE=/data/" in only("ENV")


def test_signals_reach_the_service_itself() -> None:
    """Exec form: no shell in between. SIGTERM drains."""
    assert json.loads(only("ENTRYPOINT")) == ["spectacular-bid"]
    assert json.loads(only("CMD")) == ["serve"]
    assert only("STOPSIGNAL") == "SIGTERM"
    _, _, command = only("HEALTHCHECK").partition(" CMD ")
    assert json.loads(command) == ["spectacular-bid", "healthcheck"]


def test_no_secret_is_built_in() -> None:
    """Neither by name in a variable or argument, nor by copying what is not listed."""
    for word, rest in ALL:
        if word in {"ENV", "ARG", "LABEL"}:
            assert not re.search(r"token|password|secret|_key|credential", rest, re.IGNORECASE)
        assert word != "ADD"


def test_what_is_copied_is_what_the_build_may_see() -> None:
    """`.dockerignore` lets in exactly that."""
    sources = [source for word, rest in ALL if word == "COPY" and "--from" not in rest for source in rest.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    let_in = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert "*" in ignored
    assert sorted(let_in) == sorted(sources)
    assert all((ROOT / source).exists() for source in sources)


def test_the_labels_say_what_the_project_says() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', only("LABEL")))
    assert labels.pop("revision") == "${REVISION}"
    assert labels == {
        "title": "Spectacular Bid",
        "description": PROJECT["description"],
        "version": PROJECT["version"],
        "licenses": PROJECT["license"],
    }
    assert f"--tag spectacular-bid:{PROJECT['version']} ." in TEXT
