from __future__ import annotations

import asyncio
from typing import Any

import pytest

from opencode_jupyter.core.errors import (
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionRejectedError,
)
from opencode_jupyter.core.permission import PermissionQuery, PermissionService, Rule, from_config
from tests.support.asking import ASK, S1, S2, Log, start, waiting

pytestmark = pytest.mark.anyio

# ---- decided by rule


async def test_allowed_by_rule_asks_nobody(service: PermissionService) -> None:
    log = Log(service)
    ruleset = from_config({"bash": "allow"}, "opencode.json")
    decision = await service.ask(
        PermissionQuery(session_id=S1, permission="bash", patterns=["ls", "rm x"], ruleset=ruleset)
    )
    assert (decision.action, decision.reply, decision.by) == ("allow", None, "rule")
    assert [r.origin for r in decision.rules] == ["opencode.json"] * 2
    assert log.entries == [] and service.pending() == []
    assert list(service.history) == [decision]


async def test_no_patterns_are_allowed(service: PermissionService) -> None:
    decision = await service.ask(
        PermissionQuery(session_id=S1, permission="bash", patterns=[], ruleset=from_config("deny"))
    )
    assert decision.action == "allow"


async def test_denied_by_rule_lists_the_rules_that_speak_of_it(service: PermissionService) -> None:
    ruleset = from_config({"*": "ask", "edit": "deny", "bash": {"ls": "allow", "rm *": "deny"}})
    with pytest.raises(PermissionDeniedError) as caught:
        await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["ls", "rm x"], ruleset=ruleset))
    assert caught.value.rules == [ruleset[0], ruleset[2], ruleset[3]]
    assert '[{"permission":"*","pattern":"*","action":"ask"},{"permission":"bash"' in str(caught.value)
    assert service.history[-1].action == "deny" and service.history[-1].reply is None


@pytest.mark.parametrize("patterns", [["what", "rm x"], ["rm x", "what"]])
async def test_a_denied_pattern_is_found_before_anything_is_asked(
    service: PermissionService, patterns: list[str]
) -> None:
    log = Log(service)
    ruleset = from_config({"bash": {"*": "ask", "rm *": "deny"}})
    with pytest.raises(PermissionDeniedError):
        await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=patterns, ruleset=ruleset))
    assert log.entries == []


async def test_a_deny_of_the_rules_beats_an_approval_of_the_session(service: PermissionService) -> None:
    service.remember(Rule("bash", "*", "allow", "this session"))
    with pytest.raises(PermissionDeniedError):
        await service.ask(
            PermissionQuery(
                session_id=S1, permission="bash", patterns=["rm x"], ruleset=from_config({"bash": {"rm *": "deny"}})
            )
        )
    assert (
        await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["ls"], ruleset=ASK))
    ).action == "allow"


async def test_a_deny_of_the_session_counts_and_can_be_revoked(service: PermissionService) -> None:
    rule = Rule("bash", "rm *", "deny", "this session")
    service.remember(rule)
    ruleset = from_config("allow")
    with pytest.raises(PermissionDeniedError) as caught:
        await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["rm x"], ruleset=ruleset))
    assert rule in caught.value.rules
    assert service.revoke(rule) and not service.revoke(rule)
    await service.ask(PermissionQuery(session_id=S1, permission="bash", patterns=["rm x"], ruleset=ruleset))


async def test_check_asks_nothing(service: PermissionService) -> None:
    log = Log(service)
    service.remember(Rule("bash", "git *", "allow", "this session"))
    ruleset = from_config({"bash": {"*": "ask", "rm *": "deny"}}, "opencode.json")
    rules = service.check("bash", ["git log", "rm x", "ls"], ruleset)
    assert [(r.action, r.origin) for r in rules] == [
        ("allow", "this session"),
        ("deny", "opencode.json"),
        ("ask", "opencode.json"),
    ]
    assert service.check("edit", ["x"], ruleset)[0].action == "ask"
    assert log.entries == [] and not service.history and not service.pending()


# ---- asked


async def test_one_request_shows_all_patterns(service: PermissionService) -> None:
    events: list[dict[str, Any]] = []
    service.bus.subscribe("permission.asked", events.append)
    ruleset = from_config({"bash": {"*": "ask", "ls": "allow"}}, "opencode.json")
    task = start(
        service,
        "ls",
        "a",
        "b",
        ruleset=ruleset,
        always=("a *",),
        metadata={"command": "ls; a; b"},
        tool={"messageID": "msg_1", "callID": "call_1"},
        agent="build",
    )
    [request] = await waiting(service, 1)
    assert request.patterns == ["ls", "a", "b"]
    assert request.rule == ruleset[0] and request.agent == "build"
    assert events == [{"type": "permission.asked", "properties": request.to_wire()}]
    assert request.to_wire() == {
        "id": request.id,
        "sessionID": S1,
        "permission": "bash",
        "patterns": ["ls", "a", "b"],
        "metadata": {"command": "ls; a; b"},
        "always": ["a *"],
        "tool": {"messageID": "msg_1", "callID": "call_1"},
    }
    assert service.reply(request.id, "once", by="card")
    decision = await task
    assert (decision.action, decision.reply, decision.by, decision.request_id) == ("allow", "once", "card", request.id)
    assert decision.waited >= 0 and service.approved == []


async def test_a_given_id_is_used_and_checked(service: PermissionService) -> None:
    task = start(service, "x", id="per_mine")
    assert [r.id for r in await waiting(service, 1)] == ["per_mine"]
    with pytest.raises(ValueError, match="per_mine"):
        await start(service, "y", id="per_mine")
    with pytest.raises(ValueError, match="does not start with per"):
        await start(service, "y", id="abc")
    with pytest.raises(ValueError, match="does not start with ses"):
        await start(service, "y", session="abc")
    assert [r.id for r in service.pending()] == ["per_mine"]
    assert service.reply("per_mine", "once")
    await task


async def test_the_request_is_gone_then_the_event_comes_then_the_call_goes_on(service: PermissionService) -> None:
    log = Log(service)
    order: list[str] = []
    service.bus.subscribe("permission.replied", lambda _: order.append("event"))
    task = start(service, "x")
    task.add_done_callback(lambda _: order.append("call"))
    [request] = await waiting(service, 1)
    service.reply(request.id, "once")
    await task
    await asyncio.sleep(0)
    assert order == ["event", "call"]
    assert log.entries == [("asked", request.id, ""), ("replied", request.id, "once")]
    assert log.pending_then == [[request.id], []]


async def test_pending_is_oldest_first(service: PermissionService) -> None:
    tasks = [start(service, str(i), session=f"ses_{i}") for i in range(3)]
    requests = await waiting(service, 3)
    assert [r.patterns for r in requests] == [["0"], ["1"], ["2"]]
    for request in reversed(requests):
        service.reply(request.id, "once")
    assert all(d.action == "allow" for d in await asyncio.gather(*tasks))


async def test_always_remembers_the_always_patterns_for_every_session(service: PermissionService) -> None:
    task = start(service, "git log", always=["git *", "x"])
    [request] = await waiting(service, 1)
    service.reply(request.id, "always")
    assert (await task).reply == "always"
    assert service.approved == [Rule("bash", "git *", "allow"), Rule("bash", "x", "allow")]
    assert service.approved[0].origin == "this session"
    decision = await service.ask(
        PermissionQuery(session_id=S2, permission="bash", patterns=["git status"], ruleset=ASK)
    )
    assert decision.by == "rule" and decision.rules[0].origin == "this session"


async def test_always_with_edited_patterns(service: PermissionService) -> None:
    task = start(service, "git log", always=["git *"])
    [request] = await waiting(service, 1)
    with pytest.raises(ValueError, match="list of texts"):
        service.reply(request.id, "always", patterns="git log")
    assert service.reply(request.id, "always", patterns=["git log *"])
    await task
    assert service.approved == [Rule("bash", "git log *", "allow")]


async def test_always_lets_the_sessions_other_covered_requests_go_on(service: PermissionService) -> None:
    log = Log(service)
    first = start(service, "git log", always=["git *"])
    covered = start(service, "git a", "git b")
    half = start(service, "git a", "rm x")
    other_permission = start(service, "git a", permission="edit")
    other_session = start(service, "git c", session=S2)
    requests = await waiting(service, 5)
    service.reply(requests[0].id, "always")
    assert (await first).reply == (await covered).reply == "always"
    assert [r.id for r in service.pending()] == [requests[2].id, requests[3].id, requests[4].id]
    assert log.entries[-2:] == [("replied", requests[0].id, "always"), ("replied", requests[1].id, "always")]
    service.reject_all()
    for task in (half, other_permission, other_session):
        with pytest.raises(PermissionRejectedError):
            await task


async def test_always_covers_others_by_the_sessions_rules_alone(service: PermissionService) -> None:
    # "ls" is allowed by the second call's own rules, but not by what the session remembers.
    first = start(service, "git log", always=["git *"])
    second = start(service, "ls", "git x", ruleset=from_config({"bash": {"*": "ask", "ls": "allow"}}))
    requests = await waiting(service, 2)
    service.reply(requests[0].id, "always")
    await first
    assert [r.id for r in service.pending()] == [requests[1].id]
    service.reply(requests[1].id, "once")
    await second


async def test_always_with_nothing_to_remember_is_like_once(service: PermissionService) -> None:
    task = start(service, "x")
    [request] = await waiting(service, 1)
    service.reply(request.id, "always")
    assert (await task).action == "allow"
    assert service.approved == []


async def test_reject_takes_the_sessions_other_requests_along(service: PermissionService) -> None:
    log = Log(service)
    tasks = [start(service, "a"), start(service, "b"), start(service, "c", session=S2), start(service, "d")]
    requests = await waiting(service, 4)
    service.reply(requests[1].id, "reject", "use b2")
    with pytest.raises(PermissionCorrectedError) as caught:
        await tasks[1]
    assert caught.value.feedback == "use b2"
    for task in (tasks[0], tasks[3]):
        with pytest.raises(PermissionRejectedError):
            await task
    replied = [(i, r) for kind, i, r in log.entries if kind == "replied"]
    assert replied == [(requests[i].id, "reject") for i in (1, 0, 3)]
    assert [r.id for r in service.pending()] == [requests[2].id]
    assert [d.action for d in service.history] == ["deny"] * 3
    assert service.history[0].message == "use b2"
    service.reply(requests[2].id, "once")
    await tasks[2]


@pytest.mark.parametrize(
    ("reply", "message", "error"),
    [
        ("reject", None, PermissionRejectedError),
        ("reject", "", PermissionRejectedError),
        ("reject", "no", PermissionCorrectedError),
        (("reject", "no"), None, PermissionCorrectedError),
        (("reject", ""), None, PermissionRejectedError),
    ],
)
async def test_reject_forms(
    service: PermissionService, reply: Any, message: str | None, error: type[Exception]
) -> None:
    task = start(service, "x")
    [request] = await waiting(service, 1)
    assert service.reply(request.id, reply, message)
    with pytest.raises(error):
        await task


async def test_a_person_reads_which_rule_denied(service: PermissionService) -> None:
    rules = [Rule("bash", "*", "allow"), Rule("bash", "rm *", "deny", "opencode.json"), Rule("bash", "ls", "deny")]
    with pytest.raises(PermissionDeniedError) as caught:
        await service.ask(PermissionQuery(session_id="ses", permission="bash", patterns=["rm x"], ruleset=rules))
    assert 'A rule denies this call: bash "rm *": deny from opencode.json. ' in caught.value.for_person
    assert all(rule.pattern in str(caught.value) for rule in rules)


async def test_a_reject_may_bring_its_own_error(service: PermissionService) -> None:
    tasks = [start(service, "a"), start(service, "b")]
    requests = await waiting(service, 2)
    error = PermissionDeniedError([Rule("bash", "*", "ask")])
    service.reply(requests[0].id, "reject", by="policy", error=error)
    with pytest.raises(PermissionDeniedError) as caught:
        await tasks[0]
    assert caught.value is error
    with pytest.raises(PermissionRejectedError, match="specified a rule"):
        await tasks[1]


async def test_an_unknown_id_and_a_second_reply_do_nothing(service: PermissionService) -> None:
    assert service.reply("per_none", "once") is False
    task = start(service, "x")
    [request] = await waiting(service, 1)
    assert service.reply(request.id, "once") is True
    assert service.reply(request.id, "reject") is False
    assert (await task).reply == "once"
    assert len(service.history) == 1


@pytest.mark.parametrize(
    "reply", ["allow", "", None, 1, ("reject",), ("once", "x"), ("reject", 5), ["reject", "a", "b"], {}]
)
async def test_a_bad_reply_is_refused_and_the_request_waits_on(service: PermissionService, reply: Any) -> None:
    task = start(service, "x")
    [request] = await waiting(service, 1)
    with pytest.raises(ValueError, match=r'"once", "always", "reject"|must be text'):
        service.reply(request.id, reply)
    assert [r.id for r in service.pending()] == [request.id]
    service.reply(request.id, "once")
    await task


async def test_a_subscriber_may_reply_at_once(service: PermissionService) -> None:
    service.bus.subscribe("permission.asked", lambda e: service.reply(e["properties"]["id"], "once", by="policy"))
    assert (
        await service.ask(PermissionQuery(session_id=S1, permission="x", patterns=["y"], ruleset=ASK))
    ).by == "policy"
