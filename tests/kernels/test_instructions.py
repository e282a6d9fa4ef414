"""Which instructions the hot loops become, compiled for this machine and for one with AVX2 only.

Masked stores and gathers are what a compiler makes of a branch or a table in a loop; some CPUs take ten times as long
for them.
"""

import fcntl
import json
import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instructions of x86 CPUs")

TARGETS = {"this machine": {}, "AVX2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}}
# A masked store of AVX-512 has no name of its own: a vector goes to memory under a mask.
FORBIDDEN = {
    "masked store": r"^\s*v(p?maskmov\w+\s+(%[xyz]mm\d+, ){2}|p?(mov|compress)\w+\s+%[xyz]mm\d+, (?=.*\{%k))[^%,]*\(",
    "masked load": r"^\s*vp?maskmov\w+\s+[^%\s]*\(",
    "gather": r"^\s*vp?gather\w+",
    "scatter": r"^\s*vp?scatter\w+",
}
WANTED = {
    ("networks_compiled.sort_columns", "float32"): ("vminps", "vmaxps"),
    ("networks_compiled.sort_columns", "float64"): ("vminpd", "vmaxpd"),
    ("networks_compiled.sort_tagged_columns", "float64"): ("vminpd", "vmaxpd"),
    ("columns_compiled.trimmed_mean_block", "float32"): ("vminps", "vmaxps"),
    ("columns_compiled.trimmed_mean_block", "float64"): ("vminpd", "vmaxpd"),
    ("columns_compiled.around_median_block", "float32"): ("vminps", "vmaxps", "vdivpd"),
    ("columns_compiled.around_median_block", "float64"): ("vminpd", "vmaxpd", "vdivpd"),
    ("weighted_columns_compiled.weighted_median_block", "float32"): ("vminpd", "vmaxpd"),
    ("weighted_columns_compiled.weighted_median_block", "float64"): ("vminpd", "vmaxpd"),
    ("weighted_columns_compiled.weighted_trimmed_mean_block", "float32"): ("vminpd", "vmaxpd", "vdivpd"),
    ("weighted_columns_compiled.weighted_trimmed_mean_block", "float64"): ("vminpd", "vmaxpd", "vdivpd"),
    ("distances_compiled.pairwise_block", "float32"): ("vsubps", r"vfn?m(add|sub)\d+ps", "vandps|vandnps|vpandd?"),
    ("distances_compiled.pairwise_block", "float64"): ("vsubpd", r"vfn?m(add|sub)\d+pd"),
    ("distances_compiled.pairs_block", "float32"): ("vsubpd",),
    ("distances_compiled.squared_norms_block", "float32"): (r"vfmadd\d+pd",),
    ("distances_compiled.squared_to_mean_block", "float32"): (r"vfmadd\d+p[sd]",),
    ("pooling_compiled.pool_images", "float32"): (r"vcmp\w*ps",),
    ("pooling_compiled.spread_windows", "float32"): (r"vmov(ups|dqu)\w*",),
    ("sums_compiled.weighted_sum_block", "float32"): (r"vfmadd\d+pd",),
    ("sums_compiled.largest_bits", "float32"): ("vpmaxu[dw]",),
}


def compile_and_print():
    """In a process of its own, without a cache: print the assembly of every kernel, by its name and type."""
    from fedra import kernels
    from fedra.kernels import (
        columns_compiled,
        distances_compiled,
        halves_compiled,
        networks_compiled,
        pooling_compiled,
        sums_compiled,
        weighted_columns_compiled,
    )
    from fedra.kernels.columns import aligned
    from fedra.kernels.halves import BFLOAT16
    from fedra.kernels.networks import sorting_network

    modules = (
        columns_compiled,
        distances_compiled,
        halves_compiled,
        networks_compiled,
        pooling_compiled,
        sums_compiled,
        weighted_columns_compiled,
    )
    found = {}
    for dtype in ("float32", "float64"):
        rows = np.random.default_rng(0).standard_normal((9, 5000)).astype(dtype)
        weights = np.arange(1.0, 10.0)
        steps = sorting_network(9, range(9))
        networks_compiled.sort_columns(aligned((9, 64), dtype), steps)
        networks_compiled.sort_tagged_columns(aligned((9, 64)), aligned((9, 64)), steps)
        kernels.column_median(rows)
        kernels.column_mean_around_median(rows, 5)
        kernels.column_weighted_median(rows, weights)
        kernels.column_weighted_trimmed_mean(rows, weights, 0.1)
        kernels.pairwise_l1(rows)
        kernels.pairwise_l1(rows * rows.dtype.type(np.finfo(dtype).max / 10))
        kernels.norms(rows)
        kernels.distances_to_mean(rows, weights / 45)
        kernels.weighted_sum(rows, weights)
        kernels.mixed_rows(rows, np.eye(9))
        kernels.column_moments(rows)
        kernels.largest_magnitudes(rows)
        images, pooled = np.ones((1, 4, 4, 64), dtype=dtype), np.ones((1, 2, 2, 64), dtype=dtype)
        winners = np.zeros(pooled.shape, dtype=np.int8)
        pooling_compiled.pool_images(images, pooled, winners)
        pooling_compiled.spread_windows(pooled, winners, images)
    for halves in (np.ones((9, 5000), dtype=np.float16), np.ones((9, 5000), dtype=BFLOAT16)):
        kernels.column_median(halves)
        kernels.column_weighted_median(halves, weights)
        kernels.pairwise_squared_l2(halves)
        kernels.weighted_sum(halves, weights)
    for module in modules:
        for name, kernel in vars(module).items():
            if not name.startswith("_") and getattr(kernel, "__module__", "") == module.__name__:
                for signature in getattr(kernel, "signatures", ()):
                    single = "float32" in str(signature) or "uint32" in str(signature)
                    key = f"{module.__name__.rpartition('.')[2]}.{name} {'float32' if single else 'float64'}"
                    found[key] = found.get(key, "") + kernel.inspect_asm(signature)
    print(json.dumps(found))


@pytest.fixture(scope="module", params=list(TARGETS))
def assembly(request, tmp_path_factory):
    own = tmp_path_factory.getbasetemp()
    # Compiling takes half a minute: workers side by side wait for the first, and read what it left.
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    kept = shared / f"assembly {request.param}.json"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(compiled(request.param, tmp_path_factory.mktemp("cache")), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def compiled(target, cache):
    environment = {**os.environ, **TARGETS[target], "NUMBA_CACHE_DIR": str(cache)}
    code = "from tests.kernels.test_instructions import compile_and_print; compile_and_print()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_no_masked_store_or_gather_stands_in_a_kernel(assembly):
    found = []
    for kernel, text in assembly.items():
        for what, pattern in FORBIDDEN.items():
            found.extend((kernel, what, line) for line in text.splitlines() if re.search(pattern, line))
    assert not found


@pytest.mark.parametrize(("kernel", "dtype"), list(WANTED))
def test_kernels_use_vector_instructions(assembly, kernel, dtype):
    text = assembly[f"{kernel} {dtype}"]
    for instruction in WANTED[kernel, dtype]:
        assert re.search(rf"^\s*({instruction})\s+.*%[yz]mm", text, re.MULTILINE), instruction


def test_the_patterns_find_what_they_are_for():
    examples = {
        "masked store": (
            "\tvmaskmovps\t%ymm1, %ymm0, (%rax)",
            "\tvpmaskmovd\t%ymm1, %ymm0, 32(%rax,%rcx)",
            "\tvmovups\t%zmm1, (%rax) {%k1}",
            "\tvmovupd\t%ymm1, 64(%rdi,%rax) {%k2}",
        ),
        "masked load": ("\tvmaskmovps\t(%rax), %ymm0, %ymm1",),
        "gather": ("\tvgatherqpd\t%ymm1, (%rax,%ymm0), %ymm2", "\tvpgatherdd\t(%rax,%zmm0), %zmm1 {%k1}"),
        "scatter": ("\tvscatterqpd\t%zmm0, (%rax,%zmm1) {%k1}",),
    }
    for what, lines in examples.items():
        for line in lines:
            assert re.search(FORBIDDEN[what], line, re.MULTILINE), line
    for line in (
        "\tvmovups\t%zmm1, (%rax)",
        "\tvmovapd\t%zmm2, %zmm8 {%k1}",
        "\tvmovups\t(%rax), %zmm1 {%k1} {z}",
        "\tvminps\t%ymm1, %ymm0, %ymm1",
    ):
        assert not any(re.search(pattern, line, re.MULTILINE) for pattern in FORBIDDEN.values()), line
