# Runs that print error words and are well, or fail for a reason of their own.
#: class = none
#: [green]
#: code = 0
#: child = 0
#: [plain_failure]
#: env = GPUCASE_FAIL=1
#: code = 1
#: child = 1
import os
import sys


def test_says_error_words():
    for text in (
        "tests/test_faults.py::test_illegal_memory_access[fp16] PASSED                 [ 40%]",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "# works around `an illegal memory access was encountered` on odd widths",
        "fallbacks: 3 kernels tried, 0 errors, out of 12",
        "INFO error injection is off; poisoned inputs: 0, fatal limit 9",
    ):
        print(text)
        print(text, file=sys.stderr)
    assert not os.environ.get("GPUCASE_FAIL"), "latency 3.1 ms is over the limit"


if __name__ == "__main__":
    test_says_error_words()
