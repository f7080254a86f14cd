"""jupyter_kernel_test's own checks of the kernel protocol, on a kernel that has loaded the extension."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import jupyter_kernel_test

from tests.support import kernels


class TestKernel(jupyter_kernel_test.KernelTests):  # type: ignore[misc]
    """The tests' own environment: the ipykernel that pip installs."""

    kernel_name = "opencode-test"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples: ClassVar[list[dict[str, object]]] = [
        {"text": "zi", "matches": {"zip"}},
        {"text": "%tool rea", "matches": {"read"}},
    ]
    complete_code_samples: ClassVar[list[str]] = ["1", "print('hi')", "def f(x):\n  return x*2\n\n\n", "%tool read x"]
    incomplete_code_samples: ClassVar[list[str]] = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples: ClassVar[list[str]] = ["import = 7q"]
    code_page_something = "zip?"
    code_generate_error = "raise"
    code_execute_result: ClassVar[list[dict[str, str]]] = [{"code": "1+2+3", "result": "6"}]
    code_display_data: ClassVar[list[dict[str, str]]] = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>x</b>'))", "mime": "text/html"},
        {"code": "%tool glob *.none", "mime": "text/html"},
        {"code": "%tool glob *.none", "mime": kernels.CARD_MIME},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "search")  # as in its own test of ipykernel
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        spec = folder / "kernels" / cls.kernel_name
        spec.mkdir(parents=True)
        start = [
            sys.executable,
            "-m",
            "ipykernel_launcher",
            "--ext",
            "opencode_jupyter",
            "-f",
            "{connection_file}",
        ]
        environment = {
            "PYTHONPATH": str(kernels.CHECKOUT),
            "XDG_DATA_HOME": str(folder / "data"),
            "IPYTHONDIR": str(folder / "ipython"),
        }
        (spec / "kernel.json").write_text(
            json.dumps({"argv": start, "display_name": "test", "language": "python", "env": environment})
        )
        os.environ["JUPYTER_PATH"] = str(folder)
        super().setUpClass()
        # These checks know no comm messages, and expect an output to be a call's first message.
        cls.kc.execute_interactive("%config ToolMagics.cards = False\n%tool glob *.none", timeout=60)

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        os.environ.pop("JUPYTER_PATH", None)
        cls.folder.cleanup()

    def test_it_is_loaded(self) -> None:
        """The checks above would prove nothing on a bare kernel."""
        self.flush_channels()
        reply, outputs = self.execute_helper(code="print('tool' in get_ipython().magics_manager.magics['line'])")
        assert reply["content"]["status"] == "ok"
        assert outputs[0]["content"]["text"] == "True\n"
