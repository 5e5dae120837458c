"""The layers of docs/architecture.md hold, and the check that says so can fail."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check_layers.py"
LAYOUT = ROOT / "tools" / "layout.toml"


def test_the_table_of_the_documentation_has_the_levels() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE)
    listed = LAYOUT.read_text().partition("\n[folders]\n")[2].partition("\n[")[0]
    levels = re.findall(r"^(\w+) = \{ level = (\d+)", listed, re.MULTILINE)
    assert [(folder, level) for level, folder in rows] == levels


def test_layers_hold() -> None:
    done = subprocess.run([sys.executable, CHECK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def problems_in(folder: Path, files: dict[str, str]) -> list[str]:
    """Lines of the check for a tree of these files."""
    tools = {f"tools/{path.name}": path.read_text() for path in (CHECK, LAYOUT)}
    for name, text in {**tools, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, folder / "tools" / "check_layers.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == (1 if done.stdout else 0)
    return done.stdout.splitlines()


def test_upward_include_is_found(tmp_path: Path) -> None:
    files = {
        "src/base/a.h": '#include "flow/rows/rows.h"\n',
        "src/flow/decoder/b.cpp": "#include <pybind11/pybind11.h>\n",
        "src/flow/rows/d.h": '#include "flow/code/block_cache.h"\n',
        "src/flow/corner/e.h": "",
        "src/mystery/c.h": "",
        "python/ptkit/errors.py": "from ptkit.trace import Trace\n",
    }
    assert len(problems_in(tmp_path, files)) == 6


CIRCLES = {
    "of types": {
        "table/table.py": "if TYPE_CHECKING:\n    from ptkit.table.show import Shown\n",
        "table/show.py": "from ptkit.table.table import Table\n",
    },
    "in a function": {
        "table/table.py": "def show():\n    from ptkit.table import show\n",
        "table/show.py": "from ptkit.table.table import Table\n",
    },
    "of names of ptkit": {
        "__init__.py": "if TYPE_CHECKING:\n    from ptkit.trace.facade import Trace\n",
        "trace/facade.py": "from ptkit.trace.view import View\n",
        "trace/view.py": "from ptkit import Trace\n",
    },
    "by relative imports": {
        "table/table.py": "from .show import shown\n",
        "table/show.py": "from . import table\n",
    },
}


@pytest.mark.parametrize("kind", CIRCLES)
def test_circle_of_python_modules_is_found(kind: str, tmp_path: Path) -> None:
    files = {f"python/ptkit/{name}": text for name, text in CIRCLES[kind].items()}
    (problem,) = problems_in(tmp_path, files)
    first, *others = problem.removeprefix("python/ptkit: circle of imports: ").split(" -> ")
    assert len(others) == 2
    assert others[-1] == first


def test_names_of_ptkit_that_it_has_itself_form_no_circle(tmp_path: Path) -> None:
    files = {
        "python/ptkit/__init__.py": "if TYPE_CHECKING:\n    from ptkit import export as export\n",
        "python/ptkit/export/__init__.py": "from ptkit import __version__, _core\n",
    }
    assert problems_in(tmp_path, files) == []


def test_posix_outside_its_folder_is_found(tmp_path: Path) -> None:
    files = {
        "src/base/a.h": "#include <cerrno>\n",
        "src/base/b.cpp": "#include <sys/stat.h>\n",
        "src/base/posix/a.cpp": '#include <unistd.h>\n#include "base/a.h"\n#include "base/posix/fd.h"\n',
        "src/base/posix/b.cpp": "#include <windows.h>\n",
        "src/base/win32/a.cpp": '#include <windows.h>\n#include "base/a.h"\n',
        "src/capture/linux/perf/port.cpp": '#include <sys/mman.h>\n#include "base/posix/fd.h"\n',
        "src/tables/columns/c.cpp": '# include <pthread.h>\n#include "base/posix/fd.h"\n',
    }
    assert problems_in(tmp_path, files) == [
        "src/base/b.cpp:1: sys/stat.h may be included only in src/base/posix",
        "src/base/posix/b.cpp:1: windows.h may be included only in src/base/win32",
        "src/tables/columns/c.cpp:1: pthread.h may be included only in src/base/posix",
        "src/tables/columns/c.cpp:2: base/posix/fd.h may be included only in src/base/posix",
    ]


def test_a_driver_may_use_what_all_drivers_share(tmp_path: Path) -> None:
    files = {
        "kernel/include/ptkit/regs.h": "",
        "kernel/common/pt_ops.h": '#include "ptkit/regs.h"\n',
        "kernel/common/pt_topa.c": '#include "pt_ops.h"\n',
        "kernel/linux/machine/caps.h": "",
        "kernel/linux/unit/memory.h": '#include <linux/types.h>\n#include "common/pt_ops.h"\n',
        "kernel/linux/unit/memory.c": '#include "machine/caps.h"\n#include "memory.h"\n',
        "kernel/linux/unit/running.c": '#include "unit/units.h"\n',
        "kernel/linux/unit/units.h": "",
        "kernel/linux/main.c": '#include "unit/units.h"\n',
        "src/trace_unit/msr/program.cpp": '#include "common/pt_ops.h"\n',
        "tests/machines/model/model.c": '#include "unit/memory.h"\n',
    }
    assert problems_in(tmp_path, files) == []


def test_upward_include_of_the_kernel_is_found(tmp_path: Path) -> None:
    files = {
        "kernel/linux/units.h": "",
        "kernel/common/pt_topa.c": '#include "linux/units.h"\n',
    }
    (problem,) = problems_in(tmp_path, files)
    assert (
        problem == "kernel/common/pt_topa.c:1: kernel/common (level 1.0) includes linux/units.h (level 2.4)"
    )


def test_include_of_src_in_the_kernel_is_found(tmp_path: Path) -> None:
    files = {
        "src/trace_unit/msr/config.h": "",
        "kernel/linux/units.c": '#include "trace_unit/msr/config.h"\n',
        "kernel/common/pt_topa.c": '#include "../../src/trace_unit/msr/config.h"\n',
    }
    problems = problems_in(tmp_path, files)
    assert [problem.partition(": ")[2] for problem in problems] == [
        "../../src/trace_unit/msr/config.h is not a file of kernel/",
        "trace_unit/msr/config.h is not a file of kernel/",
    ]


def test_include_of_the_driver_in_src_is_found(tmp_path: Path) -> None:
    files = {"kernel/linux/units.h": "", "src/trace_unit/msr/a.cpp": '#include "linux/units.h"\n'}
    (problem,) = problems_in(tmp_path, files)
    assert problem == "src/trace_unit/msr/a.cpp:1: linux/units.h is of the Linux driver"


def test_upward_and_sideways_includes_of_sub_folders_of_the_driver_are_found(tmp_path: Path) -> None:
    """Such levels allow no circle of sub-folders."""
    files = {
        "kernel/linux/main.h": "",
        "kernel/linux/unit/a.h": "",
        "kernel/linux/unit/tasks.c": '#include "sideband/ring.h"\n',
        "kernel/linux/unit/power.c": '#include "main.h"\n',
        "kernel/linux/sideband/ring.h": "",
        "kernel/linux/sideband/ring.c": '#include "../unit/a.h"\n',
    }
    assert problems_in(tmp_path, files) == [
        "kernel/linux/sideband/ring.c:1: kernel/linux/sideband (level 2.2) includes ../unit/a.h (level 2.2)",
        "kernel/linux/unit/power.c:1: kernel/linux/unit (level 2.2) includes main.h (level 2.4)",
        "kernel/linux/unit/tasks.c:1: kernel/linux/unit (level 2.2) includes sideband/ring.h (level 2.2)",
    ]


def test_a_folder_of_the_kernel_without_a_level_is_found(tmp_path: Path) -> None:
    files = {
        "kernel/linux/corner/a.c": '#include "b.h"\n',
        "kernel/linux/corner/b.h": "",
        "kernel/other/c.h": "",
    }
    assert [problem.partition(": ")[2] for problem in problems_in(tmp_path, files)] == [
        "kernel/linux/corner has no level in tools/layout.toml",
        "kernel/linux/corner has no level in tools/layout.toml",
        "kernel/other has no level in tools/layout.toml",
    ]


@pytest.mark.parametrize("folder", ["", "unit/"])
def test_circle_of_the_kernel_is_found(tmp_path: Path, folder: str) -> None:
    """A .c file and its header are one node: neither header includes the other here."""
    includes = {"events": ("events", "tasks"), "tasks": ("tasks", "units"), "units": ("units", "events")}
    files = {f"kernel/linux/{folder}{name}.h": "" for name in includes}
    for name, headers in includes.items():
        text = "".join(f'#include "{folder}{header}.h"\n' for header in headers)
        files[f"kernel/linux/{folder}{name}.c"] = text
    (problem,) = problems_in(tmp_path, files)
    circle = " -> ".join(f"{folder}{name}" for name in ("events", "tasks", "units", "events"))
    assert problem == f"kernel/linux: circle of includes: {circle}"


def test_a_function_of_the_driver_is_declared_in_the_header_of_its_file(tmp_path: Path) -> None:
    """A header that declares the functions of several files hides circles."""
    files = {
        "kernel/linux/ptkit.h": "int ptkit_follow(void);\nvoid ptkit_run(void);\n",
        "kernel/linux/main.c": '#include "ptkit.h"\n\nint ptkit_follow(void)\n{\n\tptkit_run();\n}\n',
        "kernel/linux/running.h": "void ptkit_run(void);\n",
        "kernel/linux/running.c": "static int __init ptkit_init(void)\n{\n}\n\nvoid ptkit_run(void)\n{\n}\n",
        "kernel/linux/unit/tasks.c": "void ptkit_run_task(void)\n{\n}\n",
    }
    assert problems_in(tmp_path, files) == [
        "kernel/linux/main.c:3: ptkit_follow() is not declared in main.h",
        "kernel/linux/unit/tasks.c:1: ptkit_run_task() is not declared in tasks.h",
    ]


def test_products_do_not_use_tests(tmp_path: Path) -> None:
    files = {
        "tests/unit/support/traces/walk.h": "",
        "tests/machines/model/kernel/model.h": "",
        "tests/support/machines/kernels.py": "",
        "src/base/a.cpp": '#include "unit/support/traces/walk.h"\n',
        "kernel/linux/main.c": '#include "../../tests/machines/model/kernel/model.h"\n',
        "python/ptkit/errors.py": "import kernels\n",
    }
    problems = problems_in(tmp_path, files)
    assert {problem.partition(":")[0] for problem in problems} == {
        "src/base/a.cpp",
        "kernel/linux/main.c",
        "python/ptkit/errors.py",
    }


def test_unit_tests_share_headers_in_one_folder(tmp_path: Path) -> None:
    files = {
        "tests/unit/support/traces/walk.h": "",
        "tests/unit/flow/scene.h": "",
        "tests/unit/flow/own.h": "",
        "tests/unit/flow/test_a.cpp": '#include "own.h"\n#include "unit/support/traces/walk.h"\n',
        "tests/unit/time/test_b.cpp": '#include "../flow/own.h"\n',
        "tests/unit/base/test_c.cpp": '#include "unit/flow/own.h"\n',
        "tests/unit/support/bad.h": '#include "unit/flow/own.h"\n',
    }
    problems = problems_in(tmp_path, files)
    assert [problem.partition(":")[0] for problem in problems] == [
        "tests/unit/base/test_c.cpp",
        "tests/unit/support/bad.h",
        "tests/unit/time/test_b.cpp",
    ]


def test_shared_python_does_not_import_tests(tmp_path: Path) -> None:
    files = {
        "tests/support/machines/debian.py": "import shutil\n",
        "tests/support/machines/kernels.py": "from debian import Missing\nimport numpy\n",
        "tests/support/checks/wheels.py": "from test_walk import WALK\n",
        "tests/python/test_walk.py": "from kernels import Kernel\n",
    }
    (problem,) = problems_in(tmp_path, files)
    assert problem == "tests/support/checks/wheels.py:1: tests/support imports test_walk, a module of tests"


# Members of `Trace`, of the core's objects in it, and of `Table` that other stages once reached.
PRIVATE = ("_arrays", "_bundle", "_context", "_open", "_opened", "_session", "_settings", "_times")


def _reached(text: str) -> list[str]:
    """Private members of an opened trace that a module takes from an object other than `self`."""
    attributes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in attributes
        if node.attr in PRIVATE and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]


def test_private_members_of_a_trace_are_not_reached() -> None:
    files = sorted((ROOT / "python" / "ptkit").rglob("*.py"))
    assert len(files) > 50
    found = [f"{path.relative_to(ROOT)}:{one}" for path in files for one in _reached(path.read_text())]
    assert found == [], "take trace.opened: ptkit.decode.OpenTrace"


def test_reaching_a_private_member_is_found() -> None:
    assert _reached("def f(trace):\n    return trace._bundle.code\n") == ["2: trace._bundle"]
    assert _reached("class A:\n    def f(self):\n        return self._trace._session\n") == [
        "3: self._trace._session"
    ]
    assert _reached("class A:\n    def f(self):\n        return self._session.streams\n") == []
