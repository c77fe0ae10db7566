"""Drives headless Chromium by WebDriver over plain HTTP: opens pages, runs scripts, keeps what the console and the network
say, takes pictures."""
import base64
import json
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

import harness

ANSWER_S = 60


def needed():
    """Skips the test where Debian's chromium and chromium-driver are missing."""
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        raise unittest.SkipTest("chromium and chromium-driver are not installed (scripts/install_deps.sh --tests)")


class Browser:
    """One browser with one window. It resolves no name, so that only loopback can be reached."""

    def __init__(self, width=1200, height=900, dark=False, script=True):
        self.port = harness.free_port()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        harness.wait_until(self.ready, 30, "chromedriver does not answer")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--window-size={width},{height}",
                     f"--user-data-dir={self.profile.name}"]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        options = {"args": arguments}
        if not script:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        self.session = ""
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.session = f"/session/{made['sessionId']}"
        self.open("about:blank")
        self.requests()  # Those of the browser's own first page.
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        if dark:
            self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except OSError:
            return False

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()[:2000]}") from None

    def cdp(self, command, **params):
        return self.call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, address):
        self.call("POST", f"{self.session}/url", {"url": address})

    def run(self, script):
        """Returns what a JavaScript function body returns."""
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": []})

    def text(self):
        return self.run("return document.body.innerText")

    def console(self):
        """What the console has said since the last call, as (level, message)."""
        return [(one["level"], one["message"]) for one in self.call("POST", f"{self.session}/se/log", {"type": "browser"})]

    def requests(self):
        """Addresses asked for since the last call."""
        events = [json.loads(one["message"])["message"]
                  for one in self.call("POST", f"{self.session}/se/log", {"type": "performance"})]
        return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]

    def picture(self, path, pixels_max):
        """Writes a PNG of the page's first `pixels_max` rows of pixels."""
        width, height = self.run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": width, "height": min(height, pixels_max), "scale": 1})
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
