"""The real app, driven as a person with assistive technology would: through AT-SPI.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import os
import signal
import subprocess
import tempfile
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

# What a shared, busy machine may need for something to show up. A test that fails waits this long; one that passes does not.
PATIENCE = 60


class Timeout(AssertionError):
    pass


def wait_for(what, condition, seconds=PATIENCE, interval=0.05):
    """Asks `condition` until it gives something true, and gives that back."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Timeout(f"{what} did not happen within {seconds} s")
        time.sleep(interval)


def walk(node, depth=0):
    """All accessible objects below `node`. One may go away while we look: then it is not there."""
    if depth > 60:
        return
    try:
        count = node.get_child_count()
    except GLib.Error:
        return
    for index in range(count):
        try:
            child = node.get_child_at_index(index)
        except GLib.Error:
            continue
        if child is None:
            continue
        yield child
        yield from walk(child, depth + 1)


def showing(node):
    try:
        return node.get_state_set().contains(Atspi.StateType.SHOWING)
    except GLib.Error:
        return False


def text_of_node(node):
    """The text of `node` itself."""
    try:
        interface = node.get_text_iface()
        return Atspi.Text.get_text(interface, 0, Atspi.Text.get_character_count(interface)) if interface else ""
    except GLib.Error:
        return ""


def text_of(node):
    """All text that can be read below `node`, one piece a line."""
    return "\n".join(text for text in map(text_of_node, walk(node)) if text)


class App:
    """One run of the app. The home folder outlives it, so that a second run finds what the first one left."""

    running = []

    def __init__(self, program, home, models, environment=None):
        self.home = home
        self.log_path = os.path.join(home, "app.log")
        self.watchdog = os.path.join(home, "watchdog")
        env = dict(os.environ)
        for name, folder in (
            ("HOME", ""),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"),
        ):
            env[name] = os.path.join(home, folder)
            os.makedirs(env[name], exist_ok=True)
        for name in ("HF_HOME", "HF_HUB_CACHE", "OXINFER_SCENE"):
            env.pop(name, None)
        env.update(
            OXINFER_MODELS=models,
            OXINFER_WATCHDOG=self.watchdog,
            GSETTINGS_BACKEND="keyfile",
            GDK_DEBUG="no-portals",
            GTK_A11Y="atspi",
            NO_AT_BRIDGE="0",
            LC_ALL="C.UTF-8",
        )
        env.update(environment or {})
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen([program], env=env, stdout=self.log, stderr=self.log)
        App.running.append(self)
        self.root = wait_for("the app's window", self._find_application)

    def _find_application(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the app ended with status {self.process.returncode}:\n{self.read_log()}")
        desktop = Atspi.get_desktop(0)
        desktop.clear_cache()
        for index in range(desktop.get_child_count()):
            try:
                application = desktop.get_child_at_index(index)
                if application is not None and application.get_process_id() == self.process.pid:
                    # What the window shows is asked for each time, never remembered.
                    application.set_cache_mask(Atspi.Cache.NONE)
                    if application.get_child_count() > 0:
                        return application
            except GLib.Error:
                continue
        return None

    def read_log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    # ---- Looking ----

    def find_all(self, role, name=None, visible=True):
        found = []
        for node in walk(self.root):
            try:
                if node.get_role() != role:
                    continue
                label = node.get_name() or ""
            except GLib.Error:
                continue
            if name is not None and not (name(label) if callable(name) else label == name):
                continue
            if visible and not showing(node):
                continue
            found.append(node)
        return found

    def find(self, role, name=None, visible=True):
        found = self.find_all(role, name, visible)
        return found[0] if found else None

    def wait_find(self, role, name=None, seconds=PATIENCE):
        return wait_for(f"{role.value_nick} “{name}”", lambda: self.find(role, name), seconds)

    def has_text(self, text):
        return text in text_of(self.root)

    def messages(self):
        """The articles of the conversation that is shown, oldest first."""
        return self.find_all(Atspi.Role.ARTICLE, visible=False)

    # ---- Doing ----

    def press(self, node):
        action = node.get_action_iface()
        assert action is not None and Atspi.Action.get_n_actions(action) > 0, f"{node.get_name()} cannot be pressed"
        assert Atspi.Action.do_action(action, 0), f"{node.get_name()} did not take the press"

    def press_button(self, name, seconds=PATIENCE):
        self.press(self.wait_find(Atspi.Role.BUTTON, name, seconds))

    def composer(self):
        def find():
            for node in self.find_all(Atspi.Role.TEXT):
                if node.get_state_set().contains(Atspi.StateType.EDITABLE) and node.get_state_set().contains(
                    Atspi.StateType.MULTI_LINE
                ):
                    return node
            return None

        return wait_for("the composer", find)

    def write(self, text):
        node = self.composer()
        editable = node.get_editable_text_iface()
        assert editable is not None, "the composer cannot be written in"
        assert Atspi.EditableText.set_text_contents(editable, text)

    def send(self, text):
        self.write(text)
        self.press_button("Send")

    def focus_window(self):
        """There is no window manager that would give the window the keyboard."""
        found = subprocess.run(
            ["xdotool", "search", "--onlyvisible", "--pid", str(self.process.pid)], capture_output=True, text=True, check=True
        )
        for window in found.stdout.split():
            subprocess.run(["xdotool", "windowfocus", "--sync", window], check=False, timeout=10)

    def type(self, text):
        subprocess.run(["xdotool", "type", "--delay", "15", text], check=True)

    def keys(self, *names):
        subprocess.run(["xdotool", "key", *names], check=True)

    def point_at(self, node):
        """Moves the pointer to the middle of `node`; the window lies at the screen's corner."""
        box = node.get_component_iface().get_extents(Atspi.CoordType.WINDOW)
        subprocess.run(["xdotool", "mousemove", str(box.x + box.width // 2), str(box.y + box.height // 2)], check=True)

    def click(self):
        subprocess.run(["xdotool", "click", "1"], check=True)

    # ---- Ending ----

    def quit(self, seconds=20):
        """As the desktop asks an app to end; every last word is saved."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    @classmethod
    def end_all(cls):
        """Takes away what a failed test has left."""
        for app in cls.running:
            if app.process.poll() is None:
                app.kill()
        cls.running.clear()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stalls(self, since=0.0):
        """Rounds of the main loop, and those times over 20 ms that the main thread was away from it after `since` (of the monotonic
        clock): (when it ended, milliseconds, milliseconds with waiting for a processor)."""
        rounds, stalls = 0, []
        with open(self.watchdog, encoding="utf-8") as file:
            for line in file:
                kind, *values = line.split()
                if kind == "rounds":
                    rounds = int(values[0])
                elif kind == "stall" and float(values[0]) >= since:
                    stalls.append(tuple(float(value) for value in values))
        return rounds, stalls


class Home:
    """A home folder for one test, taken away when it is over."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="oxinfer-test-", ignore_cleanup_errors=True)
        return self.folder.name

    def __exit__(self, *exc):
        self.folder.cleanup()
