"""File descriptors 1 and 2 while the tool ``python`` awaits: they are the other cells'."""

from tests.kernel import acts
from tests.support.kernels import Kernel

OTHER = """
await asyncio.sleep(0.1)
os.write(1, b'raw\\n')
subprocess.run('echo child', shell=True)
os.system('echo system')
await asyncio.sleep(0.8)
"""


@acts.OLDEST_AND_NEWEST
def test_other_cells_write_to_them(shared_kernel: Kernel) -> None:
    acts.prepare(shared_kernel)
    shared_kernel.run("import asyncio, os, subprocess")
    steps = "os.system('echo mine'); await asyncio.sleep(0.5); os.system('echo later');"
    shared_kernel.run(f"h = %tool --bg python {steps}")
    shared_kernel.run(OTHER)
    assert shared_kernel.run("h.done(), h.result().output.split()").result == "(True, ['mine', 'later'])"
