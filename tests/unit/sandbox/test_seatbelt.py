"""The profile that sandbox-exec gets on macOS; it can't run elsewhere."""

from __future__ import annotations

from opencode_jupyter.sandbox.confine import seatbelt_command
from opencode_jupyter.sandbox.policy import SandboxPolicy


def test_paths_stand_in_a_profile_as_they_are() -> None:
    policy = SandboxPolicy(
        "workspace-write", "/private/tmp/t", writable=('/Users/zoë/a "b"',), hidden=("/Users/zoë/.ssh",)
    )
    program, option, profile, *argv = seatbelt_command(policy, ["/bin/ls", "-l"])
    assert (program, option, argv) == ("/usr/bin/sandbox-exec", "-p", ["/bin/ls", "-l"])
    rules = profile.splitlines()
    assert rules[:2] == ["(version 1)", "(allow default)"]
    assert '(allow file-write* (subpath "/Users/zoë/a \\"b\\""))' in rules
    assert '(deny file-read* file-write* (subpath "/Users/zoë/.ssh"))' in rules
    assert rules[-1] == "(deny network*)"
