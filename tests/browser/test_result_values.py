"""What own tools return, in JupyterLab: tables, pictures and fields on the card, live and after a reload."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.acts import lab_only, project
from tests.browser.test_accessible import AXE, CHECK
from tests.support import browser as support

pytestmark = [pytest.mark.browser, lab_only]

SETUP = """
import time
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from opencode_jupyter import tool

days = pd.date_range("2026-01-01", periods=10_000, freq="h")
prices = pd.DataFrame({"city": ["Graz", "<b>Wien</b>"] * 5000, "sold": np.arange(10_000),
                       "price": np.linspace(1, 99.5, 10_000), "day": days})

@dataclass
class Fit:
    slope: float
    intercept: float
    note: str

@tool
def sales():
    '''Sales by hour.'''
    time.sleep(0.5)
    return prices

@tool
def plot():
    '''A plot.'''
    figure, axes = plt.subplots(figsize=(5, 2.5))
    axes.plot([3, 1, 4, 1, 5, 9])
    axes.set_title("Sales")
    return figure

@tool
def fit():
    '''A line.'''
    return Fit(0.25, 3.0, "10,000 points; <i>no outliers</i>")

@tool
def report():
    '''Text, a table and a plot.'''
    yield "reading prices\\n"
    yield "grouping\\n"
    figure, axes = plt.subplots(figsize=(5, 2))
    prices.groupby("city")["price"].mean().plot.barh(ax=axes)
    return prices.groupby("city")[["sold", "price"]].mean(), figure
"""
CODE = (
    "%%tool python\nprint('the first rows')\ndisplay(prices.head(3))\nplt.figure(figsize=(5, 2)); plt.plot([1, 2, 4])"
)
CELLS = ("%tool sales", "%tool plot", "%tool fit", "%tool report", CODE, "%tool inspect prices")
NAMES = ("table", "picture", "fields", "report", "python", "inspect")


def looks(notebook: support.Notebook) -> Iterator[str]:
    """The page narrow (a card is some 360 pixels wide), dark and as it was, with the name of each."""
    notebook.evaluate("() => { window.jupyterapp.shell.collapseLeft(); }")
    notebook.page.set_viewport_size({"width": 520, "height": 900})
    yield "narrow"
    notebook.page.set_viewport_size(support.VIEWPORT)
    notebook.evaluate("() => { window.jupyterapp.shell.expandLeft(); }")
    for look in ("dark", "light"):
        theme = f"JupyterLab {look.title()}"
        notebook.page.emulate_media(color_scheme=look)
        notebook.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        notebook.page.wait_for_selector(f'body[data-jp-theme-name="{theme}"]', state="attached")
        yield look


def test_values_on_cards(browser: support.Browser) -> None:
    notebook = project(browser, "values", SETUP, *CELLS, config={"permission": {"python": "allow"}})
    for index in range(1, len(CELLS) + 2):
        notebook.run(index)
    table, picture, fields, report, code, variable = (notebook.cards(index).first for index in range(2, 8))
    expect(table.locator("tbody tr")).to_have_count(50)
    expect(table.locator(".oc-caption")).to_have_text("DataFrame · the first 50 of 10,000 rows")
    expect(table.locator("td").nth(4)).to_have_text("<b>Wien</b>")
    expect(table.locator("th").nth(2)).to_have_text("pricefloat64")
    expect(table.locator(".oc-out")).to_be_hidden()
    for card in (picture, report, code):
        expect(card.locator("img")).to_have_count(1)
        assert card.locator("img").evaluate("image => image.naturalWidth") > 300
    expect(fields.locator("tbody th")).to_have_text(["slope", "intercept", "note"])
    expect(fields.locator("tbody td")).to_have_text(["0.25", "3.0", "10,000 points; <i>no outliers</i>"])
    expect(report.locator(".oc-out")).to_have_text("reading prices\ngrouping")
    expect(report.locator("tbody th")).to_have_text(["<b>Wien</b>", "Graz"])
    expect(code.locator(".oc-out")).to_have_text("the first rows")
    printed, shown = (code.locator(part).bounding_box() for part in (".oc-out", "table"))
    assert printed is not None and shown is not None and printed["y"] < shown["y"]
    expect(code).not_to_contain_text("<Figure size")
    expect(variable.locator("tbody tr")).to_have_count(5)
    for index, name in enumerate(NAMES, 2):
        assert notebook.cell(index).locator("img").count() == (name in ("picture", "report", "python"))
    notebook.page.add_script_tag(path=AXE)
    notebook.page.add_style_tag(content="body { height: 100vh; }")
    for look in looks(notebook):
        for index in range(2, len(CELLS) + 2):  # axe-core reads what is drawn
            notebook.cell(index).scroll_into_view_if_needed()
        assert notebook.evaluate(CHECK, [[".oc-card"], []]) == [], look
    assert notebook.errors == []
    notebook.close(keep=False)
