"""The page of a report in a browser."""

from __future__ import annotations

import html
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest
from shared_pages import PAGES

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
