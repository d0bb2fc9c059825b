#!/usr/bin/env python3
"""Sends the app in its Flatpak sandbox a message and waits for the answer, through AT-SPI: flatpak-smoke.py PROGRAM.

PROGRAM starts the installed app. Runs inside the screen and the buses of headless.sh; flatpak-smoke.sh calls it.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "gui", "driver"))
from app import App, Atspi, GLib, text_of, wait_for  # noqa: E402

QUESTION = "Write one sentence about cats."


class SandboxedApp(App):
    """The process in the sandbox has another number than the one that was started; the bus has no other app."""

    def _find_application(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the app ended with status {self.process.returncode}:\n{self.read_log()}")
        desktop = Atspi.get_desktop(0)
        for index in range(desktop.get_child_count()):
            try:
                application = desktop.get_child_at_index(index)
                if application is not None and "oxinfer" in application.get_name().lower() and application.get_child_count() > 0:
                    return application
            except GLib.Error:
                continue
        return None


def main():
    home = os.environ["HOME"]
    app = SandboxedApp(sys.argv[1], home, "", {"HOME": home})
    print("The window opens in the sandbox", file=sys.stderr)
    app.send(QUESTION)

    def answer():
        messages = app.messages()
        done = app.find(Atspi.Role.BUTTON, "Send") and not app.find(Atspi.Role.BUTTON, "Stop")
        return text_of(messages[-1]) if len(messages) >= 2 and done else ""

    text = wait_for("an answer in the sandbox", answer, seconds=180)
    # The app draws its words by chance, so what it says is not fixed (oxinfer-cli's answer is, and flatpak-smoke.sh looks at it). A
    # finished answer has its statistics below it, a failed one has not.
    first, *rest = text.splitlines()
    subprocess.run(["flatpak", "kill", "org.oxinfer.App"], check=False, stderr=subprocess.DEVNULL)
    app.process.wait(20)
    if len(first.split()) < 3 or not any("tok/s" in line for line in rest):
        sys.exit(f"flatpak-smoke: no whole answer, but {text!r}\n{app.read_log()}")
    print(f"The app answers in the sandbox: {first}", file=sys.stderr)


if __name__ == "__main__":
    main()
