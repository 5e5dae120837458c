"""The notebooks run from top to bottom, draw what they promise, and need nothing but public names."""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit import capture

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
FIRST_STEPS = next(path for path in NOTEBOOKS if path.name == "01_first_steps.ipynb")
SLOW_CALLS = next(path for path in NOTEBOOKS if path.name == "02_why_is_this_call_slow.ipynb")
FIGURES = 4


def available(backend: str) -> bool:
    return any(one.name == backend and one.available for one in capture.probe())


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def stored(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A notebook as it is kept."""
    notebook: dict[str, Any] = json.loads(request.param.read_text())
    return notebook


def code_of(notebook: dict[str, Any]) -> ast.Module:
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in cell.splitlines() if not line.startswith("%")]  # magics
    return ast.parse("\n".join(lines))


def test_no_outputs_are_stored(stored: dict[str, Any]) -> None:
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_only_public_names_are_used(stored: dict[str, Any]) -> None:
    used = set()
    for node in ast.walk(code_of(stored)):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("ptkit.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ptkit":
            assert node.module == "ptkit"
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
            if isinstance(node.value, ast.Name) and node.value.id == "ptkit":
                used.add(node.attr)
    assert "record" in used
    assert used <= set(ptkit.__all__)


def executed(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Run a notebook in a folder; its outputs. Fails with the traceback of a cell that fails."""
    for name in ("nbformat", "nbclient", "ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(name, reason=f"no {name}: pip install ptkit[notebook]")
    import nbformat
    from nbclient import NotebookClient

    paths = [str(Path(ptkit.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(path, as_version=4)
    # A tenth of the rows: Python's own start remains most of the recording.
    for cell in notebook.cells:
        cell.source = cell.source.replace("range(2000)", "range(200)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(outputs: list[dict[str, Any]]) -> str:
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def figures(outputs: list[dict[str, Any]]) -> list[np.ndarray[Any, Any]]:
    """The figures as arrays of shape (height, width, 3), values from 0 to 1."""
    from matplotlib.image import imread

    images = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [imread(io.BytesIO(base64.b64decode(image)), format="png")[:, :, :3] for image in images]


def is_drawn(figure: np.ndarray[Any, Any]) -> bool:
    """Whether there is more than axes and text, which are grey."""
    colorful = np.ptp(figure, axis=2) > 0.2
    return figure.shape[1] > 600 and float(figure.std()) > 0.05 and float(colorful.mean()) > 0.03


@pytest.mark.slow
def test_first_steps_notebook_draws_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not available("emulator"):
        pytest.skip("no emulator here; `ptkit doctor` says what is missing")
    outputs = executed(FIRST_STEPS, tmp_path, monkeypatch)
    drawn = figures(outputs)
    assert len(drawn) == FIGURES
    assert all(map(is_drawn, drawn))
    text = printed(outputs)
    assert "emulator" in text
    assert "exit status 0" in text
    assert "NOTE" not in text
    assert "0 errors, 0 gaps\n" in text
    assert "The recording has no end" in text
    (counts,) = (line for line in text.splitlines() if line.startswith("instructions:"))
    recorded, decoded = (int(word.replace(",", "")) for word in counts.split()[1::2])
    assert recorded == decoded > 1_000_000


@pytest.mark.slow
def test_first_steps_notebook_runs_by_single_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not available("step"):
        pytest.skip("no single stepping here; `ptkit doctor` says what is missing")
    monkeypatch.setenv("PTKIT_QEMU", str(tmp_path / "no-qemu"))
    outputs = executed(FIRST_STEPS, tmp_path, monkeypatch)
    text = printed(outputs)
    assert "back end     step" in text
    assert "no-qemu is not a program" in text
    assert "NOTE" in text
    drawn = figures(outputs)
    assert len(drawn) == FIGURES
    assert all(map(is_drawn, drawn))


def slow_calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    outputs = executed(SLOW_CALLS, folder, monkeypatch)
    drawn = figures(outputs)
    assert len(drawn) == 2
    assert all(map(is_drawn, drawn))
    return printed(outputs)


@pytest.mark.slow
def test_slow_calls_notebook_finds_slow_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not available("emulator"):
        pytest.skip("no emulator here; `ptkit doctor` says what is missing")
    text = slow_calls(tmp_path, monkeypatch)
    assert "NOTE" not in text
    (found,) = (line for line in text.splitlines() if "slow calls" in line)
    slow, fast = (int(word.replace(",", "")) for word in found.split()[::3])
    assert 0 < slow < 20 < 1000 < fast


@pytest.mark.slow
def test_slow_calls_notebook_runs_by_single_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not available("step"):
        pytest.skip("no single stepping here; `ptkit doctor` says what is missing")
    monkeypatch.setenv("PTKIT_QEMU", str(tmp_path / "no-qemu"))
    assert "NOTE" in slow_calls(tmp_path, monkeypatch)
