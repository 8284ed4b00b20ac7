"""Makes softmax_triton.ptx and its entry of Triton's cache: python softmax_triton.py FOLDER (Triton 3.9, no GPU needed)."""

import json
import os
import pathlib
import sys

# Keeps this machine's paths out of the PTX.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(out_ptr, in_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(in_ptr + row * n_cols + offs, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + offs, e / tl.sum(e, axis=0), mask=mask)


source = ASTSource(
    softmax,
    signature={"out_ptr": "*fp32", "in_ptr": "*fp32", "n_cols": "i32", "BLOCK": "constexpr"},
    constexprs={(3,): 1024},
)
# An old PTX version, so that old drivers can load it.
kernel = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"ptx_version": 80})
folder = pathlib.Path(sys.argv[1])
for form in ["ptx", "ttir"]:
    (folder / f"softmax.{form}").write_text(kernel.asm[form])
keys = ["name", "num_warps", "num_ctas", "shared", "global_scratch_size", "triton_version"]
metadata = {key: getattr(kernel.metadata, key) for key in keys}
(folder / "softmax.json").write_text(json.dumps(metadata, indent=1) + "\n")
