"""Shows the progress of a run on sys.stderr, as the command shows it on a terminal."""
import os
import sys
import threading
from typing import Optional, TextIO


def _in_notebook() -> bool:
    """Says whether this is a kernel of IPython, whose stderr is a cell's output."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """Prints notices as lines, and the progress as one line that is overwritten where it can be.

    Invariant: the live line, if there is one, is the last of the stream.
    """

    def __init__(self, stream: Optional[TextIO] = None) -> None:
        self._stream: TextIO = sys.stderr if stream is None else stream
        self._terminal = self._is_terminal()
        self.live = self._terminal or _in_notebook()
        self._line = ""
        self._lock = threading.Lock()

    def notice(self, line: str) -> None:
        """Prints a line above the live one."""
        with self._lock:
            text = line if line.endswith("\n") else line + "\n"
            self._write(self._erase() + text + self._line)

    def warning(self, line: str) -> None:
        """Prints a warning above the live line."""
        self.notice("warning: " + line)

    def progress(self, line: str) -> None:
        """Puts a line in the place of the live one; "" removes it."""
        with self._lock:
            erased = self._erase()
            self._line = line[: self._columns_max()]
            self._write(erased + self._line)

    def close(self) -> None:
        """Removes the live line."""
        if self._line:
            self.progress("")

    def _is_terminal(self) -> bool:
        try:
            return self._stream.isatty()
        except (AttributeError, ValueError):
            return False

    def _columns_max(self) -> int:
        """Only one row of a terminal can be overwritten, and one line of a notebook."""
        columns = 0
        if self._terminal:
            try:
                columns = os.get_terminal_size(self._stream.fileno()).columns
            except (AttributeError, ValueError, OSError):
                pass  # A terminal that does not tell.
        return columns - 1 if columns > 1 else 120

    def _erase(self) -> str:
        """A notebook knows the carriage return alone, so the old line is covered by blanks."""
        if self._terminal:
            return "\r\033[K"
        return "\r" + " " * len(self._line) + "\r" if self._line else ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # A stream that is closed or gone does not stop a training.
