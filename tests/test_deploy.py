"""The files in ``deploy/`` against the product: commands, options, ports, paths and variables that they name exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from dagster._cli import cli as dagster_cli
from dagster._core.instance.config import dagster_instance_config
from dagster._daemon.cli import cli as daemon_cli

from falcon_assets import dagster_instance
from falcon_assets.settings import VARIABLES, load_settings
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.front.app import HEALTH
from tests.processes import CHECKOUT

DEPLOY = CHECKOUT / "deploy"
PROGRAMS = {"falcon": falcon, "dagster": dagster_cli, "dagster-daemon": daemon_cli}
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
VALUES = yaml.safe_load((DEPLOY / "values.yaml").read_text())
CONFIG, FRONT, SERVICE, DAEMON = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
OURS = {name: one for name, one in COMPOSE["services"].items() if name != "database"}
POD = FRONT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
DAEMON_POD = DAEMON["spec"]["template"]["spec"]
(DAEMON_CONTAINER,) = DAEMON_POD["containers"]
CODE = VALUES["dagster-user-deployments"]["deployments"][0]
HOME = "/srv/falcon"


def instructions(name: str) -> list[str]:
    """What instructions of that name say, with continued lines."""
    return re.findall(rf"^{name} (.*)$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)


def parsed(words: Sequence[str]) -> click.Context:
    """The context of a command line; fails where a command, an option or a value does not exist."""
    program, *rest = words
    found: click.Command = PROGRAMS[program]
    context = click.Context(found, info_name=program)
    while isinstance(found, click.Group):
        name, found, rest = found.resolve_command(context, list(rest))  # type: ignore[assignment]
        context = click.Context(found, parent=context, info_name=name)
    return found.make_context(context.info_name, list(rest), parent=context.parent)


def commands() -> Iterator[list[str]]:
    for one in OURS.values():
        yield from [one["command"]] if "command" in one else []
        check = one["healthcheck"]["test"][1:] if "healthcheck" in one else []
        if check[:2] == ["python", "-c"]:
            compile(check[2], "healthcheck", "exec")
        elif check:
            yield check
    yield yaml.safe_load(instructions("CMD")[-1])
    yield from (CONTAINER["args"], DAEMON_CONTAINER["args"])
    yield ["dagster", "code-server", "start", "-h", "0.0.0.0", "-p", str(CODE["port"]), *CODE["codeServerArgs"]]


@pytest.mark.parametrize("words", commands(), ids=shlex.join)
def test_a_command_exists(words: list[str]) -> None:
    assert parsed(words).params is not None


def test_an_unknown_option_would_be_found() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parsed(["falcon", "serve", "--hosts", "x"])


def test_ports_and_paths_belong_together() -> None:
    front, code = parsed(CONTAINER["args"]).params["port"], parsed(OURS["code"]["command"]).params["port"]
    assert {front, int(code)} == {int(port) for port in instructions("EXPOSE")[0].split()}
    (check,) = (one for one in instructions("HEALTHCHECK"))
    assert f"http://127.0.0.1:{front}{HEALTH}'" in check
    assert [one["containerPort"] for one in CONTAINER["ports"]] == [front]
    probes = [CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert probes == [{"path": HEALTH, "port": "http"}] * 3
    assert OURS["front"]["ports"] == [f"127.0.0.1:{front}:{front}"]  # nobody else reaches it without a proxy
    here = yaml.safe_load((DEPLOY / "workspace.yaml").read_text())["load_from"][0]["grpc_server"]
    assert (here["host"], here["port"]) == ("code", code)
    there = yaml.safe_load(CONFIG["data"]["workspace.yaml"])["load_from"][0]["grpc_server"]
    assert (there["host"], there["port"]) == (CODE["name"], CODE["port"])


def test_variables_are_settings_and_lead_into_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    image = dict(pair.split("=", 1) for line in instructions("ENV") for pair in shlex.split(line))
    given = {name for one in OURS.values() for name in one["environment"]}
    given |= {one["name"] for place in (CONTAINER, CODE, DAEMON_CONTAINER) for one in place["env"]}
    ours = {name for name in {*image, *given} if name.startswith("FALCON_")}
    assert ours <= VARIABLES
    settings = load_settings({**image, **OURS["code"]["environment"]})
    assert (settings.home, settings.entity_defs) == (Path(HOME, ".falcon"), Path(HOME, "entity_defs"))
    assert settings.read_only
    assert settings.webserver is None
    assert image["DAGSTER_HOME"] == HOME == instructions("WORKDIR")[-1]
    used = {one.rpartition(":")[0].partition(":")[2] or one.partition(":")[2] for one in OURS["code"]["volumes"]}
    assert used == {f"{HOME}/entity_defs", f"{HOME}/workspace.yaml", f"{HOME}/.falcon"}


def test_what_is_copied_into_the_image_exists_and_nothing_else_is_sent() -> None:
    copied = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert [one for one in copied if not (CHECKOUT / one).exists()] == []
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert sent[0] == "*"
    assert {one[1:] for one in sent if one.startswith("!")} == set(copied)


def test_nothing_runs_as_root_or_writes_beside_its_volumes() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert [name for name, one in COMPOSE["services"].items() if not one["read_only"]] == []
    assert [name for name, one in OURS.items() if one["cap_drop"] != ["ALL"]] == []
    pods = [(POD, CONTAINER), (DAEMON_POD, DAEMON_CONTAINER), (CODE, CODE)]
    for pod, container in pods:
        whose = pod.get("podSecurityContext") or pod["securityContext"]
        assert (whose["runAsNonRoot"], whose["runAsUser"]) == (True, 10001)
        assert container["securityContext"]["readOnlyRootFilesystem"]
        mounted = {one["mountPath"] for one in container["volumeMounts"]}
        assert mounted >= {"/tmp", f"{HOME}/.falcon"}


def test_secrets_are_in_files() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    assert re.findall(r"postgresql://[^@/]*:[^@/]*@", text) == []
    told = [name for one in COMPOSE["services"].values() for name in one["environment"] if "PASSWORD" in name]
    assert told == ["POSTGRES_PASSWORD_FILE"]
    ignored = (CHECKOUT / ".gitignore").read_text().splitlines()
    assert "deploy/secrets/" in ignored


def test_dagster_takes_the_instance_and_it_is_that_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(CONFIG["data"]["dagster.yaml"])
    declared: dict[str, Any] = dagster_instance_config(str(tmp_path))[0]
    checkout = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    same = ("storage", "local_artifact_storage", "compute_logs", "run_coordinator", "sensors", "python_logs")
    assert {name: declared[name] for name in same} == {name: checkout[name] for name in same}
    assert hasattr(dagster_instance, declared["storage"]["custom"]["class"])
    launcher = declared["run_launcher"]["config"]
    assert launcher["instance_config_map"] == CONFIG["metadata"]["name"]
    assert launcher["dagster_home"] == HOME


def test_images_and_names_belong_together() -> None:
    images = {CONTAINER["image"], DAEMON_CONTAINER["image"], *(one["image"] for one in OURS.values())}
    assert images == {f"{CODE['image']['repository']}:{CODE['image']['tag']}"}
    assert SERVICE["spec"]["selector"] == FRONT["spec"]["template"]["metadata"]["labels"]
    secrets = {one["name"] for one in CODE["envSecrets"]} | {VALUES["global"]["postgresqlSecretName"]}
    made = re.findall(r"create secret generic (\S+)", (DEPLOY / "values.yaml").read_text())
    assert {*secrets, POD["volumes"][1]["secret"]["secretName"]} == set(made)
