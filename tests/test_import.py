"""What importing fedra brings along."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "flwr", "numba", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "ray", "typer", "rich")


def modules_after(code):
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stdout.split())


def test_importing_fedra_imports_nothing_heavy():
    loaded = modules_after("import fedra")
    assert "fedra.rules" in loaded
    assert not loaded.intersection(HEAVY)


def test_a_rule_at_work_imports_numba_and_no_framework():
    loaded = modules_after("import fedra, numpy; fedra.FedRA()(numpy.eye(8), [1] * 8)")
    assert "numba" in loaded
    assert not loaded.intersection({"torch", "flwr", "sklearn", "pandas", "ray"})


@pytest.mark.parametrize("name", ["FedRA", "make_rule", "RULES", "pairwise_l1", "screen", "Verdict"])
def test_the_interface_has_its_names(name):
    import fedra

    assert name in fedra.__all__
    assert hasattr(fedra, name)
