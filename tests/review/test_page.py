"""The page: nothing of a table becomes markup; where there is a browser, a round by keyboard."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from pnuauc import Review, fit_table

EVIL = "</script><script>document.title='hacked'</script><img src=x onerror=alert(1)>"


def table(n=60):
    rng = np.random.default_rng(0)
    hidden = np.arange(n) % 5 == 0
    words = np.where(hidden, "urgent transfer to a new account", "weekly lunch menu of the canteen")
    return pd.DataFrame(
        {
            "id": [f"=row {k}" for k in range(n)],
            "text": [
                f"{w} number {k}, sent by somebody to somebody else" for k, w in enumerate(words)
            ],
            "amount": rng.normal(size=n) + hidden,
            "note": [EVIL if k % 7 == 0 else f"plain note {k}" for k in range(n)],
            "y": np.where(np.arange(n) < 10, hidden, np.nan),
        }
    )


@pytest.fixture
def review(tmp_path):
    return Review(table(), tmp_path / "review", label="y", id="id", batch=30, random_state=0)


def page_data(batch):
    text = batch.page.read_text("utf-8")
    return text, json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_page_is_one_file_in_which_cells_are_data(review):
    batch = review.next_batch()
    text, data = page_data(batch)
    assert EVIL not in text
    assert text.count("<script") == 2
    assert "http://" not in text
    assert "https://" not in text
    assert [row["id"] for row in data["rows"]] == batch.ids
    notes = [dict(row["cells"] + row["texts"])["note"] for row in data["rows"]]
    assert EVIL in notes
    assert "y" not in dict(data["rows"][0]["cells"])


def test_page_does_not_tell_how_a_row_was_drawn(review):
    batch = review.next_batch()
    _text, data = page_data(batch)
    assert set(data["rows"][0]) == {"id", "texts", "cells", "marks", "reasons"}
    by = {row.id: row.by for row in review.ledger.batches[0]}
    order = [by[i] for i in batch.ids]
    assert order != sorted(order)
    assert order != sorted(order, reverse=True)


def test_words_that_speak_for_a_row_are_marked(review):
    review.next_batch()
    _, data = page_data(review.next_batch())
    marks = {mark for row in data["rows"] for mark in row["marks"]}
    assert marks & {"urgent", "transfer", "account", "urgent transfer"}


def test_sheet_comes_back_as_it_was_filled_in(review, tmp_path):
    batch = review.next_batch()
    sheet = pd.read_csv(batch.sheet, dtype=str, keep_default_na=False)
    assert sheet["id"].str.startswith("'=row").all()
    assert (sheet["decision"] == "").all()
    sheet["decision"] = "no"
    sheet.to_csv(tmp_path / "filled.csv", index=False)
    assert review.add(tmp_path / "filled.csv") == []
    assert review.status().n_open == 0


@pytest.fixture
def browser(tmp_path):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("There is no chromium with its driver here.")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=390,800",
    ):
        options.add_argument(argument)
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(tmp_path / "downloads")}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    found = selenium.Chrome(options=options, service=service)
    yield found
    found.quit()


def wait_for(check, seconds=20):
    import time

    for _ in range(10 * seconds):
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("It did not happen.")


@pytest.mark.system
def test_a_round_by_keyboard(review, browser, tmp_path):
    from selenium.webdriver.common.by import By

    batch = review.next_batch()
    truth = dict(zip(table()["id"], np.arange(60) % 5 == 0))

    def press(key):
        browser.switch_to.active_element.send_keys(key)

    def shown():
        return browser.find_element(By.CSS_SELECTOR, "article h2").text

    browser.get(batch.page.as_uri())
    assert browser.title == f"Review of {review.folder.name}, round 1"
    for name in batch.ids[:12]:
        assert shown().startswith(name)
        press("p" if truth[name] else "n")
    press("n" if truth[batch.ids[12]] else "p")  # a slip
    press("z")
    assert shown().startswith(batch.ids[12])
    browser.refresh()  # in the middle
    assert browser.find_element(By.ID, "count").text.startswith("12 of 30 decided")
    assert shown().startswith(batch.ids[12])
    press("l")
    assert len(browser.find_elements(By.CSS_SELECTOR, "article")) == 30
    press("l")
    for name in batch.ids[12:]:
        press("1" if truth[name] else "0")
    assert browser.find_element(By.ID, "count").text.startswith("30 of 30 decided")
    assert browser.find_elements(By.CSS_SELECTOR, "mark, article") != []
    width = browser.execute_script("return [document.body.scrollWidth, window.innerWidth]")
    assert width[0] <= width[1]  # a phone
    press("e")
    file = tmp_path / "downloads" / "decisions-1.csv"
    wait_for(lambda: file.exists() and file.stat().st_size)
    assert browser.get_log("browser") == []
    assert review.add(file) == []
    assert review.ledger.labels == {i: int(truth[i]) for i in batch.ids}
    assert review.status().n_open == 0
    assert review.next_batch().round == 2
    columns = {"label": "y", "ids": ["id"], "drop": ["probability", "note"]}
    study = fit_table(review.labelled(), **columns, comparisons=False, importance=False)
    assert study.findings["labels"]["unlabeled"] == 60 - 10 - 30
