"""A folder full of modules that would run, or of settings that would be read: nothing of it is.

Every module of the standard library and every dependency lies there, and says so when it runs.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "click",
    "flint",
    "matplotlib",
    "mpmath",
    "numpy",
    "PIL",
    "plotext",
    "pyarrow",
    "randomgen",
    "rich",
    "scipy",
    "yaml",
)
RECIPE = """\
dpcalc: recipe/1
defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
cases:
  s: {command: rdp, matrix: {noise_std: [1, 2, 3, 4, 5]}, assert: epsilon <= 5}
  t: {command: rdp, noise_std: 9, matrix: {index: [1, 2, 3]}, accept: one-index, assert: epsilon <= 5}
"""
TRAIN = "train --data example:breast-cancer -e 1 -d 1e-5 -R 5 --seed 1 --replicas 4 --workers 2"
SWEEP = "compare --algorithm pnsgd -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 1,2,3 -d 1e-6"
INSTALLED = ("-P", "-c", "import sys; from dpcalc.cli.main import main; sys.exit(main())")
"""How the command that is installed starts: its own folder is where it looks for modules."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return such a folder; a module that runs there leaves its name in ``ran`` and ends its process with 0."""
    folder = tmp_path_factory.mktemp("hostile")
    # What `python -m` itself imports before the package is out of the package's reach.
    before = subprocess.run(
        [sys.executable, "-P", "-c", "import runpy, sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for name in sorted(
        {*sys.stdlib_module_names, *PACKAGES, "sitecustomize", "usercustomize"} - {*before, "antigravity"}
    ):
        (folder / f"{name}.py").write_text(f"import os; open('ran', 'a').write('{name} '); os._exit(0)\n")
    (folder / "matplotlibrc").write_bytes(b"backend: module://pickle\nfont.size: none\n\xff\n")
    (folder / "r.yaml").write_text(RECIPE)
    return folder


def run(folder: Path, *command: str, **variables: str) -> int:
    """Return the exit code of a command in the folder, where nothing may have run."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env={**os.environ, "PYTHONPATH": path, **variables},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    ran = folder / "ran"
    assert not ran.exists(), ran.read_text()
    assert "Traceback" not in done.stderr
    return done.returncode


MODULE = ("-m", "dpcalc")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("how", "line", "code"),
    [
        (MODULE, "check r.yaml", 1),
        (MODULE, "check r.yaml -j 2", 1),
        pytest.param(INSTALLED, "check r.yaml -j 2", 1, marks=pytest.mark.campaign),
        (MODULE, "check r.yaml -j 2 --run ^t --certify --json", 0),
        pytest.param(MODULE, "check r.yaml --timeout 0 --memory-limit 0", 1, marks=pytest.mark.campaign),
        (INSTALLED, "check r.yaml -j 2 --run s --report plot=s.svg --report junit=s.xml", 1),
        (MODULE, TRAIN, 0),
        pytest.param(INSTALLED, TRAIN, 0, marks=pytest.mark.campaign),
        pytest.param(MODULE, f"{SWEEP} --plot s.png", 0, marks=pytest.mark.campaign),
        (MODULE, f"{SWEEP} --plot -", 0),
    ],
)
def test_nothing_of_the_folder_runs(hostile: Path, how: tuple[str, ...], line: str, code: int) -> None:
    assert run(hostile, *how, *shlex.split(line), MPLBACKEND="module://pickle") == code


def test_the_modules_of_the_folder_would_run(hostile: Path) -> None:
    with pytest.raises(AssertionError, match="selectors"):
        run(hostile, "-c", "import selectors")
    (hostile / "ran").unlink()


def test_a_checkout_runs_as_a_module_and_nothing_beside_the_package_does(hostile: Path) -> None:
    shutil.copytree(ROOT / "dpcalc", hostile / "dpcalc")
    version = hostile / "dpcalc" / "version.py"
    version.write_text(version.read_text().replace("0.", "77."))
    try:
        assert (
            run(hostile, "-m", "dpcalc", "check", "r.yaml", "-j", "2", PYTHONPATH=os.environ.get("PYTHONPATH", "")) == 1
        )
        done = subprocess.run(
            [sys.executable, "-m", "dpcalc", "--version"], cwd=hostile, capture_output=True, text=True, check=True
        )
        assert "77." in done.stdout
    finally:
        shutil.rmtree(hostile / "dpcalc")
