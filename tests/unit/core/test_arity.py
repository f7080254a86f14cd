from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.arity import ARITY, prefix


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("", ""),
        ("ls -la", "ls"),
        ("touch foo.txt", "touch"),
        ("unknown command here", "unknown"),
        ("git checkout main", "git checkout"),
        ("git", "git"),
        ("git config user.name x", "git config user.name"),
        ("git stash pop --index", "git stash pop"),
        ("npm install x", "npm install"),
        ("npm run dev --port 1", "npm run dev"),
        ("npm run", "npm run"),
        ("docker compose up -d", "docker compose up"),
        ("docker run -it x", "docker run"),
        ("aws s3 ls bucket", "aws s3 ls"),
        ("gh pr list --all", "gh pr list"),
        ("python -m venv .venv", "python -m"),
        ("consul kv get a", "consul kv get"),
        ("terraform workspace select dev", "terraform workspace select"),
        ("terraform apply", "terraform apply"),
        ("bun x vite build", "bun x vite"),
        ("cargo run main.rs", "cargo run main.rs"),
        ("yarn dlx create", "yarn dlx create"),
        ("rm -rf /", "rm"),
    ],
)
def test_prefix(command: str, expected: str) -> None:
    assert prefix(command.split()) == expected.split()


def test_the_table_is_whole() -> None:
    assert sum(1 for a in ARITY.values() if a == 2) == 64
    assert sum(1 for name, a in ARITY.items() if a == 3 and " " not in name) == 6
    assert sum(1 for name in ARITY if " " in name) == 41


@given(st.lists(st.sampled_from(["git", "npm", "run", "x", "-f", "docker", "compose", "", "config"]), max_size=6))
def test_prefix_begins_the_command_and_is_not_empty(tokens: list[str]) -> None:
    command = prefix(tokens)
    assert command == tokens[: len(command)]
    assert bool(command) == bool(tokens)
    assert len(command) <= 3
