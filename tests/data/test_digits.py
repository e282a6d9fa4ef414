"""The embedded data set."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from fedra.data import load_dataset


def test_the_split_is_stratified_complete_and_fixed() -> None:
    first, second = load_dataset("digits"), load_dataset("digits")
    assert first.train_inputs.shape == (1438, 1, 8, 8)
    assert first.test_inputs.shape == (359, 1, 8, 8)
    share = np.bincount(first.test_labels) / (np.bincount(first.train_labels) + np.bincount(first.test_labels))
    assert np.all(np.abs(share - 0.2) < 0.005)
    np.testing.assert_array_equal(first.train_inputs, second.train_inputs)
    assert abs(float(np.concatenate([first.train_inputs, first.test_inputs]).mean())) < 1e-3


def test_importing_the_package_imports_neither_scikit_learn_nor_torch() -> None:
    code = "import sys, fedra.data; sys.exit(any(name in sys.modules for name in ('sklearn', 'scipy', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
