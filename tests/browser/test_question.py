"""A person answers questions in the card; a question and an ask of one batch in either order; a reload keeps both."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.acts import ALLOW_ONCE, asking, button, lab_only, project
from tests.support.browser import Browser, Notebook

pytestmark = pytest.mark.browser

ANSWER, DISMISS = "Answer", "Dismiss"
OWN = "Type your own answer"
SETUP = """
DB = {'question': 'Which database?', 'header': 'DB', 'options': [
    {'label': 'SQLite', 'description': 'one file'}, {'label': 'PostgreSQL', 'description': 'a server'}]}
EXTRAS = {'question': 'Which formats?', 'header': 'Formats', 'multiple': True, 'options': [
    {'label': 'CSV', 'description': ''}, {'label': 'Parquet', 'description': ''}]}
one, two = {'questions': [DB]}, {'questions': [DB, EXTRAS]}
both = {'tool_calls': [{'tool': 'bash', 'parameters': {'command': 'echo from-bash', 'description': 'Says so'}},
                       {'tool': 'question', 'parameters': one}, {'tool': 'read', 'parameters': {'filePath': 'a.txt'}}]}
"""


def questioned(notebook: Notebook, index: int) -> Locator:
    """The innermost card of a cell that has a question, its controls alive."""
    card = notebook.cards(index).filter(has=notebook.page.get_by_role("button", name=ANSWER)).last
    expect(button(card, DISMISS)).to_be_enabled()
    return card


@lab_only
def test_choices_own_words_keyboard_and_dismissal(browser: Browser) -> None:
    notebook = project(
        browser,
        "question",
        SETUP,
        "r = %tool question --from two\nprint(r.metadata['answers'])",
        "def f():\n    r = %tool question --from two\n    return r\nprint(f().metadata['answers'])",
        "%tool question --from one",
        "# typing here",
    )
    notebook.run(1)
    notebook.run(2, wait=False)
    card = questioned(notebook, 2)
    expect(button(card, ANSWER)).to_be_disabled()
    card.get_by_label("PostgreSQL").check()
    card.get_by_label("CSV").check()
    card.get_by_label(f"{OWN}: Which formats?").fill("Arrow, really")
    time.sleep(1)
    button(card, ANSWER).click()
    notebook.wait_idle(2)
    notebook.wait_text(2, "[['PostgreSQL'], ['CSV', 'Arrow, really']]")
    expect(notebook.cards(2).locator("dd").first).to_have_text("PostgreSQL")
    # By keyboard, in a function that blocks the kernel; what is typed elsewhere answers nothing.
    notebook.run(3, wait=False)
    notebook.cell(5).locator(".cm-content").click()
    card = questioned(notebook, 3)
    notebook.page.keyboard.type(" 1 2")
    expect(card.get_by_label("SQLite")).not_to_be_checked()
    card.get_by_label("SQLite").focus()
    for key in ("2", "Tab", "Tab", "1", "2", "Enter"):
        notebook.page.keyboard.press(key)
    notebook.wait_idle(3)
    notebook.wait_text(3, "[['PostgreSQL'], ['CSV', 'Parquet']]")
    notebook.run(4, wait=False)
    button(questioned(notebook, 4), DISMISS).click()
    notebook.wait_idle(4)
    notebook.wait_text(4, "QuestionRejectedError: You dismissed this question")
    notebook.wait_text(4, "dismissed by you")
    assert notebook.errors == []
    notebook.close()


@lab_only
@pytest.mark.parametrize(("style", "order"), [("awaited", "ask first"), ("function", "question first")])
def test_a_question_and_an_ask_of_one_batch(browser: Browser, order: str, style: str) -> None:
    code = {
        "awaited": "r = %tool batch --from both\nprint(r.title)",
        "function": "def f():\n    r = %tool batch --from both\n    return r\nprint(f().title)",
    }[style]
    notebook = project(browser, f"batch-{style}-{order.split()[0]}", SETUP, code, "print('next')")
    notebook.run(1)
    notebook.run(2, wait=False)
    notebook.run(3, wait=False)
    question = questioned(notebook, 2)
    ask = notebook.cards(2).filter(has=notebook.page.get_by_role("button", name=ALLOW_ONCE)).last
    expect(button(ask, ALLOW_ONCE)).to_be_enabled()
    expect(notebook.cards(2)).to_have_count(4)
    question.get_by_label("SQLite").check()
    first, second = (question, ask) if order == "question first" else (ask, question)
    for card, others in ((first, second), (second, None)):
        name = ANSWER if card is question else ALLOW_ONCE
        time.sleep(0.5)
        button(card, name).click()
        if others is not None:
            left = ALLOW_ONCE if name == ANSWER else ANSWER
            expect(button(notebook.cards(2), name)).to_have_count(0)
            expect(
                button(notebook.cards(2).last, left).or_(button(notebook.cards(2).first, left)).first
            ).to_be_visible()
            if left == ANSWER:
                expect(question.get_by_label("SQLite")).to_be_checked()
    notebook.wait_idle(2)
    notebook.wait_text(2, "3/3 successful")
    notebook.wait_text(3, "next")
    expect(notebook.cards(2).filter(has_text="completed")).to_have_count(4)
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_stop_of_a_call_inside_and_of_the_whole(browser: Browser) -> None:
    setup = (
        "calls = {'tool_calls': [{'tool': 'bash', 'parameters': {'command': 'sleep 600', 'description': d}}"
        " for d in ('First', 'Second')]}"
    )
    notebook = project(browser, "stop-inside", setup, "r = %tool batch --from calls\nprint(r.title)", config={})
    notebook.run(1)
    notebook.run(2, wait=False)
    inner = notebook.cards(2).filter(has_text="First").last
    button(inner, "Stop").click()
    expect(inner).to_contain_text("stopped")
    expect(notebook.cards(2).filter(has_text="Second").last).to_contain_text("running")
    button(notebook.cards(2).first, "Stop").first.click()
    notebook.wait_idle(2)
    expect(notebook.cards(2).first).to_contain_text("stopped")
    notebook.close()


@lab_only
def test_a_page_reload_keeps_a_question_and_shows_how_it_ended(browser: Browser) -> None:
    notebook = project(
        browser, "reload-question", SETUP, "r = %tool question --from one\nprint('next', r.metadata['answers'])"
    )
    notebook.run(1)
    notebook.save()
    notebook.run(2, wait=False)
    questioned(notebook, 2)
    notebook.save()
    notebook.leave()
    again = browser.open(notebook.name, kernel=False)
    card = again.cards().filter(has_text="waiting for an answer").first
    card.wait_for()
    expect(button(card, DISMISS)).to_be_enabled()
    card.get_by_label("PostgreSQL").check()
    button(card, ANSWER).click()
    again.wait_kernel("idle")
    again.wait_text(2, "PostgreSQL")
    again.wait_text(2, "completed")
    assert "State unknown" not in again.text(2)
    saved = again.save()
    assert "widget-view" not in str(saved)
    again.close()


@lab_only
def test_a_call_that_ends_behind_a_reloaded_page_shows_its_end(browser: Browser) -> None:
    notebook = project(browser, "reload-running", "%tool bash echo begun; sleep 6; echo ended-well", config={})
    notebook.run(1, wait=False)
    notebook.wait_text(1, "begun")
    notebook.save()
    notebook.leave()
    again = browser.open(notebook.name, kernel=False)
    again.wait_text(1, "ended-well", timeout=30)
    again.wait_text(1, "completed")
    assert "State unknown" not in again.text(1)
    again.close()


@lab_only
def test_an_ask_still_counts_beside_a_question_of_another_cell(browser: Browser) -> None:
    notebook = project(
        browser, "two-cells", SETUP, "h = %tool --bg question --from one", "r = %tool bash echo two\nprint(r.output)"
    )
    notebook.run(1)
    notebook.run(2)
    notebook.run(3, wait=False)
    expect(asking(notebook, 3)).to_contain_text("2 of 2 waiting")
    button(asking(notebook, 3), ALLOW_ONCE).click()
    notebook.wait_idle(3)
    card = questioned(notebook, 2)
    card.get_by_label("SQLite").check()
    button(card, ANSWER).click()
    notebook.wait_text(2, "completed")
    notebook.close()
