"""The HTML page of an audit, also in a browser, and the code in it that repeats the audit."""

from __future__ import annotations

import html
import http.server
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import fields, replace
from xml.etree import ElementTree

import numpy as np
import pytest
from shared_messages import find_missing
from shared_pages import AUDITS, NASTY, PAGES, audit, noisy

import dpcore
from dpcore import Audit, Counts, Laplace, Pair
from dpcore.bounds import limits
from dpcore.mechanisms.declarations import can_core_draw
from dpcore.report import figures, rows
from dpcore.results import audit_json, audit_page, audit_text
from dpcore.results.audit_page import make_page
from dpcore.visible import make_visible

SPACE = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
every = pytest.mark.parametrize("name", AUDITS)


def tree(name):
    # A parser of XML is stricter than any browser: every element closed, every name quoted.
    return ElementTree.fromstring(PAGES[name].encode())


def words(name, element="main"):
    """The text of a part of the page, without the pictures."""
    part = next(tree(name).iter(f"{SPACE}{element}"))
    pieces = []

    def walk(node):
        if node.tag in (f"{SVG}svg", f"{SPACE}script", f"{SPACE}details"):
            return
        pieces.append(node.text or "")
        for child in node:
            walk(child)
            pieces.append(child.tail or "")

    walk(part)
    return " ".join(" ".join(pieces).split())


def known(text):
    """What a page makes of a text: blanks run together, invisible characters written out."""
    return " ".join(make_visible(text, "\n").split())


@every
def test_every_row_of_the_report_is_in_the_page(name):
    found, shown = AUDITS[name], words(name)
    for label, line in audit_text.list_report_rows_without_time(found):
        assert known(f"{label} {line}") in shown
    assert known(found.name) in shown
    lower, hat = map(rows.format_epsilon, (found.epsilon_lower, found.epsilon_hat))
    assert f"confidence {100 * found.confidence:g} %" in shown
    assert not find_missing(shown, f"epsilon certified {lower}", f"epsilon estimated {hat}")
    assert (f"delta of the claim {found.delta:g}" in shown) is (found.delta > 0)
    assert ("NaN entries" in shown) is (found.nan + found.nan_prime > 0)
    footer = words(name, "footer")
    assert f"Seed {found.seed}." in footer
    versions = f"dpcore {dpcore.__version__}, numpy {np.__version__}, Python {sys.version[:4]}"
    assert not find_missing(footer, versions, "draws/s on ")


def test_the_claim_is_shown_where_the_bound_stands():
    assert "epsilon claimed 1 " in words("distance")
    # With delta nothing is divided: the bound at distance 3 meets the claim at distance 3.
    assert "epsilon claimed at distance 3 1.5 " in words("delta, distance")
    assert "does not exceed" not in words("delta, distance")
    assert "the claim 0.5 x distance 3 = 1.5" in words("delta, distance")
    assert "epsilon claimed none " in words("no claim")


@every
def test_the_table_of_counts(name):
    found, c = AUDITS[name], AUDITS[name].counts
    (table,) = (one for one in tree(name).iter(f"{SPACE}table") if one.get("class") == "counts")
    head, *rows = ([cell.text for cell in row] for row in table.iter(f"{SPACE}tr"))
    assert head == ["input", "x", "x'"]
    assert rows[:2] == [
        ["event happened", f"{c.k:,}", f"{c.k_prime:,}"],
        ["draws", f"{c.n:,}", f"{c.n_prime:,}"],
    ]
    shares = [float(cell) for cell in rows[2][1:]]
    assert shares == pytest.approx([c.k / c.n, c.k_prime / c.n_prime], rel=1e-5)
    assert found.nan != found.nan_prime or not found.nan
    nan = [["NaN entries", f"{found.nan:,}", f"{found.nan_prime:,}"]]
    assert rows[3:] == (nan if found.nan or found.nan_prime else [])


NUMBER = r"([0-9.]+(?:e-?[0-9]+)?)"


@every
def test_the_proof_can_be_checked_by_hand(name):
    if AUDITS[name].bound != "clopper_pearson":
        assert "P(E |" not in words(name)
        return
    """Every number of the proof, read from the page and computed again from the four counts."""
    found, shown = AUDITS[name], words(name)
    ordered = found.bound_counts
    up, down = ("x", "x'") if found.direction == "x" else ("x'", "x")
    assert f"E happened {ordered.k:,} times in {ordered.n:,} on {up} and " in shown
    assert f" and {ordered.k_prime:,} times in {ordered.n_prime:,} on {down}." in shown
    low = float(re.search(rf"P\(E \| {up}\) >= {NUMBER} and", shown)[1])
    high = float(re.search(rf"P\(E \| {down}\) <= {NUMBER},", shown)[1])
    alpha = (1 - found.confidence) / 2
    assert low == pytest.approx(limits(ordered.k, ordered.n, alpha)[0], rel=1e-5)
    assert high == pytest.approx(limits(ordered.k_prime, ordered.n_prime, alpha)[1], rel=1e-5)
    assert low <= ordered.k / ordered.n
    assert high >= ordered.k_prime / ordered.n_prime
    assert f"limits at {alpha:.6g} each" in shown
    if found.epsilon_lower == 0.0:
        assert "nothing is certified" in shown
        assert low - found.delta <= high
        return
    top, bottom = re.search(rf"ln\((.+?) / {NUMBER}\)", shown).groups()
    value = float(re.search(r"\) = ([0-9.]+)[.;]", shown)[1])
    numerator = [float(part) for part in top.strip("()").split(" - ")]
    assert numerator == [low, *([found.delta] if found.delta else [])]
    assert float(bottom) == high
    assert value == pytest.approx(math.log((low - found.delta) / high), abs=2e-4)
    apart = 1.0 if found.delta else found.pair.distance
    assert value / apart == pytest.approx(found.epsilon_lower, abs=1e-4)
    assert (f"over the distance {apart:g} that is" in shown) is (apart != 1.0)


def test_the_proof_says_how_the_event_was_chosen():
    assert "chosen on 512 pilot draws per side, which were then thrown away" in words("refuted")
    assert "chosen by rule, without a look at any draw" in words("no pilot")


@every
def test_the_comparison_follows_the_verdict(name):
    found, shown = AUDITS[name], words(name)
    expected = {True: [True, False], False: [False, True], None: [False, False]}[found.refuted]
    assert [" exceeds the claim" in shown, "does not exceed the claim" in shown] == expected
    assert shown.count(found.verdict) >= 2


def test_a_bound_of_another_kind_is_not_explained_as_a_quotient(monkeypatch):
    monkeypatch.setattr(audit_page, "limits", lambda k, n, alpha: (0.5, 0.6))
    shown = make_page(AUDITS["refuted"])
    assert "Clopper-Pearson limits" not in shown
    bound = rows.format_epsilon(AUDITS["refuted"].epsilon_lower)
    assert f"With 95 % confidence epsilon &gt;= {bound}." in shown


def test_no_page_says_that_a_mechanism_is_private():
    for name in ("not refuted", "no claim", "nothing certified"):
        assert not re.search(r"is private|passed|is safe|no leak|holds true", words(name).lower())
    assert "That does not show that the claim is true" in words("not refuted")
    assert "No claim was given" in words("no claim")
    # Verdicts have the colours of the report.
    colours = {"refuted": figures.RED, "not refuted": figures.BLUE, "no claim": figures.GREY}
    for name, colour in colours.items():
        assert f'class="verdict" style="background:{colour}"' in PAGES[name]


def test_what_users_write_stays_text():
    for name in ("nasty name", "own objects"):
        text = PAGES[name]
        assert find_missing(text, "<script>alert", "&lt;script&gt;alert") == ["<script>alert"]
        scripts = [node for node in tree(name).iter() if node.tag.endswith("script")]
        assert [node.get("type") for node in scripts] == ["application/json"]
    text = make_page(replace(AUDITS["refuted"], event="a < b & 'c' \"d\""))
    assert "a &lt; b &amp; &#x27;c&#x27; &quot;d&quot;" in text


@every
def test_the_json_in_the_page_is_the_audit(name):
    found = AUDITS[name]
    (script,) = tree(name).iter(f"{SPACE}script")
    # No entity may be needed: a browser hands a script's text over as it stands.
    marked = r'<script type="application/json" id="audit">\n(.*?)\n</script>'
    raw = re.search(marked, PAGES[name], re.S)
    assert raw[1] == script.text.strip()
    assert not set("<>&") & set(raw[1])
    assert json.loads(raw[1]) == found.to_dict()
    *_, visible = tree(name).iter(f"{SPACE}details")
    assert json.loads("".join(visible.find(f"{SPACE}pre").itertext())) == found.to_dict()
    again = Audit.from_json(raw[1])
    assert again == found or not can_core_draw(found.mechanism)
    assert again.counts == found.counts


@pytest.mark.parametrize("name", ["refuted", "nan", "callable", "own objects"])
def test_one_audit_gives_one_page(name):
    found = AUDITS[name]
    assert make_page(found) == PAGES[name]
    slower = make_page(replace(found, seconds=123.0, threads=7)).splitlines()
    lines = PAGES[name].splitlines()
    assert len(slower) == len(lines)
    changed = {lines[i][:12] for i in range(len(lines)) if lines[i] != slower[i]}
    # Text and script hold the same JSON, once with its quotes written as entities.
    expected = {'"seconds": ', '"threads": ', '"derived": ', '<p class="soft'}
    quoted = {html.unescape(f"&quot;{key[1:]}"[:12]) for key in expected}
    known = {key[:11] for key in expected | quoted}
    assert changed
    assert {html.unescape(line)[:11] for line in changed} <= known


def test_a_users_style_of_pictures_does_not_matter():
    import matplotlib

    with matplotlib.rc_context({"text.color": "#ff00ff", "figure.facecolor": "#123456"}):
        assert make_page(AUDITS["refuted"]) == PAGES["refuted"]
        assert matplotlib.rcParams["text.color"] == "#ff00ff"


@every
def test_pictures(name):
    found = AUDITS[name]
    drawings = list(tree(name).iter(f"{SVG}svg"))
    assert len(drawings) == 1
    for node in drawings:
        assert node.get("role") == "img"
        assert f"certified {rows.format_epsilon(found.epsilon_lower)}" in node.get("aria-label")
        texts = ["".join(text.itertext()).strip() for text in node.iter(f"{SVG}text")]
        epsilons = map(rows.format_epsilon, (found.epsilon_lower, found.epsilon_hat))
        assert not find_missing(texts, *epsilons)
        assert ("closed form" in texts) is (found.exact is not None)
        assert not any("script" in text for text in texts)


@every
def test_names_in_a_page_are_unique_and_every_reference_has_its_name(name):
    names = [node.get("id") for node in tree(name).iter() if node.get("id")]
    assert len(names) == len(set(names))
    link = "{http://www.w3.org/1999/xlink}href"
    found = [node.get(link)[1:] for node in tree(name).iter() if node.get(link)]
    found += re.findall(r"url\(#([^)]*)\)", PAGES[name])
    assert found
    assert set(found) <= set(names)


class Richer(Audit):
    """An audit with one more picture, and one that it cannot draw."""

    __slots__ = ()

    def plot_tradeoff(self, ax=None):
        ax.subplots().set(title="$x^{$", xlim=(0, 1), ylim=(0, 1))
        return ax

    def plot_profile(self, ax=None):
        raise ValueError("no profile")


def test_an_audit_with_more_pictures_shows_them():
    plain = AUDITS["nasty name"]
    richer = Richer(**{field.name: getattr(plain, field.name) for field in fields(Audit)})
    text = make_page(richer)
    drawings = list(ElementTree.fromstring(text.encode()).iter(f"{SVG}svg"))
    assert len(drawings) == 2
    # The name stands in an attribute here, quotes and all.
    assert [NASTY in node.get("aria-label") for node in drawings] == [False, True]
    assert find_missing(text, "<h3>Trade-off curve</h3>", "Privacy profile") == ["Privacy profile"]
    assert "Trade-off" not in PAGES["refuted"]


@every
def test_the_page_asks_for_nothing(name):
    for node in tree(name).iter():
        for key, value in node.attrib.items():
            assert not re.search(r"https?:|//", value), (key, value)
            if key.endswith(("src", "href")):
                assert value.startswith(("#", "data:")), value
            assert not key.startswith("on")
    style = "".join(next(tree(name).iter(f"{SPACE}style")).itertext())
    assert not re.search(r"url\(|@import|@font-face", style)
    assert "default-src 'none'" in PAGES[name]


@every
def test_headings_and_tables_are_marked_as_such(name):
    levels = [int(node.tag[-1]) for node in tree(name).iter() if re.search(r"\}h[1-6]$", node.tag)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert tree(name).get("lang") == "en"
    assert all(node.get("scope") for node in tree(name).iter(f"{SPACE}th"))


def test_counts_of_every_kind_have_a_page():
    for counts in (Counts(0, 10, 0, 10), Counts(10, 10, 0, 10), Counts(0, 10, 10, 10)):
        ElementTree.fromstring(make_page(replace(AUDITS["refuted"], counts=counts)).encode())


def run(found, **space):
    exec(audit_json.make_script(found), space)
    return space["report"]


REPEATED = ("refuted", "not refuted", "no claim", "no pilot", "nan", "distance", "delta, distance")


@pytest.mark.parametrize("name", REPEATED)
def test_the_code_repeats_the_audit(name):
    found = AUDITS[name]
    assert run(found) == found
    assert html.escape(audit_json.make_script(found)) in PAGES[name]
    assert eval(audit_json.format_call(found)) == found


def test_the_code_repeats_an_audit_of_a_function():
    found = audit(noisy, ([0.0], [1.0]), trials=1000, start=0, claim=1.0, rng=3, block=100)
    assert "import shared_pages\n" in audit_json.make_script(found)
    assert run(found) == found
    modules = {"dpcore": dpcore, "shared_pages": sys.modules["shared_pages"]}
    assert eval(audit_json.format_call(found), modules) == found


def test_the_code_keeps_start_block_route_and_every_range():
    options = {"claim": 1.0, "rng": 5, "block": 64, "route": "sampled"}
    first = audit(Laplace(1.0), trials=1000, **options)
    later = audit(Laplace(1.0), trials=500, start=2048, **options)
    assert run(later) == later
    assert "start=2048" in audit_json.format_call(later)
    both = first + later
    assert run(both).counts == both.counts
    assert audit_json.format_call(both).count("dpcore.audit(") == 2
    for audited, whole in ((both, False), (AUDITS["partial"], False), (first, True)):
        assert ("# Not one whole run" in audit_json.make_script(audited)) != whole


def test_what_no_record_holds_is_left_open():
    own = AUDITS["own objects"]
    code = audit_json.make_script(own)
    known = {"mechanism": r".*<lambda>$", "attack": r"shared_pages\.positive$", "pair": r"\("}
    for name, comment in known.items():
        assert re.search(rf"^{name} = \.\.\.  # {comment}", code, re.M)
    assert "attack=attack" in code
    line = audit_json.format_call(own, mechanism="mine", pair="ours")
    assert line.startswith("dpcore.audit(mine, ours, attack=attack, ")
    # A name with a line break must not end the comment.
    broken = replace(AUDITS["refuted"], mechanism="a\nimport nothing")
    compile(audit_json.make_script(broken), "", "exec")


def test_a_long_pair_is_read_from_the_data():
    pair = Pair(np.arange(40.0), np.arange(40.0) + 0.25)
    found = audit(noisy, pair, trials=1000, claim=1.0, rng=1)
    assert run(found, text=found.to_json()) == found
    ones = audit(Laplace(1.0), dpcore.pairs.zeros_ones(200), trials=100, claim=1.0, rng=1)
    assert "np.array([0.0] * 200), np.array([1.0] * 200)" in audit_json.format_call(ones)
    assert eval(audit_json.format_call(ones)) == ones


@pytest.mark.parametrize(
    ("x", "x_prime", "text"),
    [
        ("a", "it's", "dpcore.Pair('a', \"it's\")"), (1, True, "dpcore.Pair(1, True)"),
        ([0.0] * 5, [0.0, 0.0, -0.0, 0.0, 0.0], None), (np.arange(3), np.arange(3), None),
        (np.zeros((2, 2)), np.ones((2, 2)), None), (np.array([math.inf]), np.array([0.0]), None),
        (math.nan, 0.0, None), (object(), 1, None), ("a" * 500, "b", None),
    ],
)  # fmt: skip
def test_pairs_as_python(x, x_prime, text):
    found = replace(AUDITS["refuted"], pair=Pair(x, x_prime))
    shown = audit_json.pair_expression(found)
    if text is not None:
        assert shown == text
    assert shown is None or eval(shown) == found.pair
    assert (shown is None) is (text is None and not isinstance(x, list))


# The page in a browser.

BROWSERS = ("google-chrome", "chromium", "chromium-browser")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), "")
MEASURE = """
addEventListener('load', () => {
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    const seen = [...page.querySelectorAll('svg')].filter(svg => svg.clientWidth > 0);
    const letters = seen.flatMap(svg => [...svg.querySelectorAll('text')]);
    return {
      width: root.clientWidth, needed: root.scrollWidth, pictures: seen.length,
      letters: Math.min(...letters.map(text => text.getBoundingClientRect().height)),
    };
  });
  document.title = JSON.stringify(found);
});
"""


@pytest.fixture
def served():
    """A web server on this machine: `files` is what it has, `asked` what it was asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            content = server.files.get(self.path, "").encode()
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.asked = {}, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def browse(served, pages, folder):
    """What a browser measures of pages at 360 and at 1200 pixels, two entries a page."""
    served.files = {f"/{number}": text for number, text in enumerate(pages)}
    frames = "".join(
        f'<iframe src="{path}" width="{width}" height="800" style="border: 0"></iframe>'
        for path in served.files
        for width in (360, 1200)
    )
    icon = '<link rel="icon" href="data:,">'
    served.files["/all"] = f"<!DOCTYPE html>{icon}<script>{MEASURE}</script>{frames}"
    address = f"http://127.0.0.1:{served.server_port}/all"
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={folder}", "--window-size=1300,900", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    assert title, done.stderr
    return json.loads(html.unescape(title[1]))


@pytest.mark.skipif(not BROWSER, reason=f"none of {', '.join(BROWSERS)} is on the PATH")
def test_in_a_browser_nothing_overflows_and_nothing_is_asked_for(served, tmp_path):
    # The negative control: a line that cannot break, and an image from elsewhere.
    wide = PAGES["refuted"].replace("<h1>", '<h1 style="white-space: nowrap; width: 2000px">')
    wide = re.sub(r"<meta http-equiv.*?/>", '<img src="/image" alt="" />', wide, flags=re.S)
    names = ("refuted", "nasty name", "delta, distance", "nan", "long words", "large counts")
    pages = [PAGES[name].replace("<details>", '<details open="">') for name in names]
    found = browse(served, [*pages, wide], tmp_path)
    assert len(found) == 2 * len(pages) + 2
    for one, width in zip(found[:-2], (360, 1200) * len(pages), strict=True):
        assert abs(one["width"] - width) < 20
        assert one["needed"] <= one["width"]
        assert one["pictures"] == 1
        # Pixels of the smallest line of text in a picture.
        assert one["letters"] >= 10
    for control in found[-2:]:
        assert control["needed"] > control["width"]
    assert set(served.asked) == {*served.files, "/image"}
