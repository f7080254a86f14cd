"""Permissions: rules, what they decide, and requests that wait for a person's reply (docs/opencode/core.md 10)."""

from __future__ import annotations

from .decision import Action, Decision, Rule, RuleSource
from .request import PermissionQuery, PermissionRequest, Reply
from .rules import (
    ACTIONS,
    EDIT_TOOLS,
    RuleConfig,
    disabled,
    evaluate,
    expand,
    from_config,
    merge,
    never_matches,
    permission_key,
    relevant,
)
from .service import PermissionService

__all__ = [
    "ACTIONS",
    "EDIT_TOOLS",
    "Action",
    "Decision",
    "PermissionQuery",
    "PermissionRequest",
    "PermissionService",
    "Reply",
    "Rule",
    "RuleConfig",
    "RuleSource",
    "disabled",
    "evaluate",
    "expand",
    "from_config",
    "merge",
    "never_matches",
    "permission_key",
    "relevant",
]
